//! What goes wrong in the soak: each kind once in an order of its own, then by chance and by the clock. How often each
//! has hit is counted, so that a soak says what it has tried.

use harness::{FaultInjector, FaultTarget, InterruptedCall, SmallDisk, sleep};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// One ill thing. In this order each comes once; the daemon's end ahead of the clock, since the next one has a clock that
/// can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SoakFault {
    DaemonKilled,
    ClockSet,
    TmuxKilled,
    DiskFull,
    DaemonSignalled,
    ShimKilled,
    AgentKilled,
    DaemonStopped,
    ShimStopped,
    AgentStopped,
    DescriptorsExhausted,
    WatchesExhausted,
    KillCommandKilled,
    TaskCommandKilled,
    StatusCommandKilled,
}

use SoakFault::{
    AgentKilled, AgentStopped, ClockSet, DaemonKilled, DaemonSignalled, DaemonStopped, DescriptorsExhausted,
    DiskFull, KillCommandKilled, ShimKilled, ShimStopped, StatusCommandKilled, TaskCommandKilled, TmuxKilled,
    WatchesExhausted,
};

const ALL_FAULTS: [SoakFault; 15] = [
    DaemonKilled,
    ClockSet,
    TmuxKilled,
    DiskFull,
    DaemonSignalled,
    ShimKilled,
    AgentKilled,
    DaemonStopped,
    ShimStopped,
    AgentStopped,
    DescriptorsExhausted,
    WatchesExhausted,
    KillCommandKilled,
    TaskCommandKilled,
    StatusCommandKilled,
];

/// Those that come by chance; the daemon's end as often as four of the others, until the calm.
const RANDOM_FAULTS: [SoakFault; 14] = [
    DaemonKilled,
    DaemonKilled,
    DaemonSignalled,
    ClockSet,
    ShimKilled,
    AgentKilled,
    DaemonStopped,
    ShimStopped,
    AgentStopped,
    DescriptorsExhausted,
    WatchesExhausted,
    KillCommandKilled,
    TaskCommandKilled,
    StatusCommandKilled,
];

/// Between two of the kind that has its own times.
const TMUX: Duration = Duration::from_secs(60);
const DISK: Duration = Duration::from_secs(90);

/// What is to come, and what has hit.
pub(super) struct FaultSchedule<'d> {
    disk: Option<&'d SmallDisk>,
    first: VecDeque<SoakFault>,
    tmux_at: Instant,
    disk_at: Instant,
    hits: BTreeMap<SoakFault, u64>,
}

impl<'d> FaultSchedule<'d> {
    /// Without a disk of its own it is never full, without a clock that one never jumps, and so on.
    pub(super) fn new(disk: Option<&'d SmallDisk>, clock: bool) -> FaultSchedule<'d> {
        let watches = harness::can_limit_watches();
        let can = |kind: &SoakFault| match kind {
            DiskFull => disk.is_some(),
            ClockSet => clock,
            WatchesExhausted => watches,
            _ => true,
        };
        let (first, now) = (ALL_FAULTS.into_iter().filter(can).collect(), Instant::now());
        FaultSchedule { disk, first, tmux_at: now + TMUX, disk_at: now + DISK, hits: BTreeMap::new() }
    }

    /// Each kind has hit once.
    pub(super) fn all_kinds_hit(&self) -> bool {
        self.first.is_empty()
    }

    /// What comes next. In the calm the daemon lives.
    pub(super) fn next(&mut self, rng: &mut fastrand::Rng, calm: bool) -> SoakFault {
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
        match RANDOM_FAULTS[rng.usize(0..RANDOM_FAULTS.len())] {
            DaemonKilled | DaemonSignalled | WatchesExhausted if calm => StatusCommandKilled,
            kind => kind,
        }
    }

    /// It comes. One of the first that has not hit, since nobody was there, comes again.
    pub(super) fn inject(&mut self, kind: SoakFault, nemesis: &mut FaultInjector<'_>) {
        if !self.inject_fault(kind, nemesis) {
            return;
        }
        *self.hits.entry(kind).or_default() += 1;
        if self.first.front() == Some(&kind) {
            self.first.pop_front();
        }
    }

    fn inject_fault(&self, kind: SoakFault, nemesis: &mut FaultInjector<'_>) -> bool {
        let span = Duration::from_millis(nemesis.rng.u64(200..1_500));
        let jump = nemesis.rng.i64(-3_600..3_600);
        match kind {
            DaemonKilled => nemesis.kill(FaultTarget::Daemon).is_some(),
            DaemonSignalled => nemesis.signal_daemon().is_some(),
            ShimKilled => nemesis.kill(FaultTarget::Shim).is_some(),
            AgentKilled => nemesis.kill(FaultTarget::Agent).is_some(),
            TmuxKilled => nemesis.kill(FaultTarget::Tmux).is_some(),
            DaemonStopped => nemesis.stop(FaultTarget::Daemon, span).is_some(),
            ShimStopped => nemesis.stop(FaultTarget::Shim, span).is_some(),
            AgentStopped => nemesis.stop(FaultTarget::Agent, span).is_some(),
            WatchesExhausted => nemesis.restart_without_watches().is_some(),
            DescriptorsExhausted => nemesis.limit_descriptors(span),
            ClockSet => nemesis.set_clock(jump),
            DiskFull => self.disk.is_some_and(|disk| fill_disk(disk, nemesis)),
            KillCommandKilled => run_and_kill(nemesis, &["kill", "k0"]),
            TaskCommandKilled => {
                run_and_kill(nemesis, &["task", "create", "idle", "--metadata", "{\"command\": \"true\"}"])
            }
            StatusCommandKilled => run_and_kill(nemesis, &["status"]),
        }
    }

    /// How often each has hit.
    pub(super) fn counts(&self) -> &BTreeMap<SoakFault, u64> {
        &self.hits
    }
}

fn run_and_kill(nemesis: &mut FaultInjector<'_>, words: &[&str]) -> bool {
    nemesis.run_and_kill(words) == InterruptedCall::Killed
}

fn fill_disk(disk: &SmallDisk, nemesis: &FaultInjector<'_>) -> bool {
    nemesis.log("the disk is full for 2 s");
    disk.fill();
    sleep(Duration::from_secs(2));
    disk.free();
    true
}
