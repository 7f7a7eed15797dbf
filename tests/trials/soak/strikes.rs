//! What goes wrong in the soak: each kind once in an order of its own, then by chance and by the clock. How often each
//! has hit is counted, so that a soak says what it has tried.

use harness::{Call, Disk, Nemesis, Whom, pause};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// One ill thing. In this order each comes once; the daemon's end ahead of the clock, since the next one has a clock that
/// can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    DaemonKilled,
    ClockSet,
    TmuxKilled,
    DiskFull,
    DaemonTold,
    JoinKilled,
    AgentKilled,
    DaemonStopped,
    JoinStopped,
    AgentStopped,
    DescriptorsGone,
    WatchesGone,
    CallOfKillKilled,
    CallOfTaskKilled,
    CallOfStatusKilled,
}

use Kind::{
    AgentKilled, AgentStopped, CallOfKillKilled, CallOfStatusKilled, CallOfTaskKilled, ClockSet,
    DaemonKilled, DaemonStopped, DaemonTold, DescriptorsGone, DiskFull, JoinKilled, JoinStopped, TmuxKilled,
    WatchesGone,
};

const ALL: [Kind; 15] = [
    DaemonKilled,
    ClockSet,
    TmuxKilled,
    DiskFull,
    DaemonTold,
    JoinKilled,
    AgentKilled,
    DaemonStopped,
    JoinStopped,
    AgentStopped,
    DescriptorsGone,
    WatchesGone,
    CallOfKillKilled,
    CallOfTaskKilled,
    CallOfStatusKilled,
];

/// Those that come by chance; the daemon's end as often as four of the others, until the calm.
const BY_CHANCE: [Kind; 14] = [
    DaemonKilled,
    DaemonKilled,
    DaemonTold,
    ClockSet,
    JoinKilled,
    AgentKilled,
    DaemonStopped,
    JoinStopped,
    AgentStopped,
    DescriptorsGone,
    WatchesGone,
    CallOfKillKilled,
    CallOfTaskKilled,
    CallOfStatusKilled,
];

/// Between two of the kind that has its own times.
const TMUX: Duration = Duration::from_secs(60);
const DISK: Duration = Duration::from_secs(90);

/// What is to come, and what has hit.
pub(super) struct Strikes<'d> {
    disk: Option<&'d Disk>,
    first: VecDeque<Kind>,
    tmux_at: Instant,
    disk_at: Instant,
    hits: BTreeMap<Kind, u64>,
}

impl<'d> Strikes<'d> {
    /// Without a disk of its own it is never full, without a clock that one never jumps, and so on.
    pub(super) fn new(disk: Option<&'d Disk>, clock: bool) -> Strikes<'d> {
        let watches = harness::can_limit_watches();
        let can = |kind: &Kind| match kind {
            DiskFull => disk.is_some(),
            ClockSet => clock,
            WatchesGone => watches,
            _ => true,
        };
        let (first, now) = (ALL.into_iter().filter(can).collect(), Instant::now());
        Strikes { disk, first, tmux_at: now + TMUX, disk_at: now + DISK, hits: BTreeMap::new() }
    }

    /// Each kind has hit once.
    pub(super) fn had_each(&self) -> bool {
        self.first.is_empty()
    }

    /// What comes next. In the calm the daemon lives.
    pub(super) fn next(&mut self, rng: &mut fastrand::Rng, calm: bool) -> Kind {
        let now = Instant::now();
        if let Some(kind) = self.first.front() {
            return *kind;
        }
        if !calm && now > self.tmux_at {
            self.tmux_at += TMUX;
            return TmuxKilled;
        }
        if self.disk.is_some() && now > self.disk_at {
            self.disk_at += DISK;
            return DiskFull;
        }
        match BY_CHANCE[rng.usize(0..BY_CHANCE.len())] {
            DaemonKilled | DaemonTold | WatchesGone if calm => CallOfStatusKilled,
            kind => kind,
        }
    }

    /// It comes. One of the first that has not hit, since nobody was there, comes again.
    pub(super) fn strike(&mut self, kind: Kind, nemesis: &mut Nemesis<'_>) {
        if !self.hits(kind, nemesis) {
            return;
        }
        *self.hits.entry(kind).or_default() += 1;
        if self.first.front() == Some(&kind) {
            self.first.pop_front();
        }
    }

    fn hits(&self, kind: Kind, nemesis: &mut Nemesis<'_>) -> bool {
        let span = Duration::from_millis(nemesis.rng.u64(200..1_500));
        let jump = nemesis.rng.i64(-3_600..3_600);
        match kind {
            DaemonKilled => nemesis.kill(Whom::Daemon).is_some(),
            DaemonTold => nemesis.tell_to_end().is_some(),
            JoinKilled => nemesis.kill(Whom::Join).is_some(),
            AgentKilled => nemesis.kill(Whom::Agent).is_some(),
            TmuxKilled => nemesis.kill(Whom::Tmux).is_some(),
            DaemonStopped => nemesis.stop(Whom::Daemon, span).is_some(),
            JoinStopped => nemesis.stop(Whom::Join, span).is_some(),
            AgentStopped => nemesis.stop(Whom::Agent, span).is_some(),
            WatchesGone => nemesis.blind().is_some(),
            DescriptorsGone => nemesis.starve(span),
            ClockSet => nemesis.set_clock(jump),
            DiskFull => self.disk.is_some_and(|disk| fills(disk, nemesis)),
            CallOfKillKilled => killed(nemesis, &["kill", "k0"]),
            CallOfTaskKilled => {
                killed(nemesis, &["task", "create", "idle", "--metadata", "{\"command\": \"true\"}"])
            }
            CallOfStatusKilled => killed(nemesis, &["status"]),
        }
    }

    /// How often each has hit.
    pub(super) fn told(&self) -> &BTreeMap<Kind, u64> {
        &self.hits
    }
}

fn killed(nemesis: &mut Nemesis<'_>, words: &[&str]) -> bool {
    nemesis.call_killed(words) == Call::Killed
}

fn fills(disk: &Disk, nemesis: &Nemesis<'_>) -> bool {
    nemesis.tell("the disk is full for 2 s");
    disk.fill();
    pause(Duration::from_secs(2));
    disk.free();
    true
}
