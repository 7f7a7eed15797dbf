//! Chooses and injects the faults of the soak test: first each kind once in a fixed order, then at
//! random, and some kinds at fixed intervals. Counts how often each kind has hit.

use harness::{FaultInjector, FaultTarget, InterruptedCall, SmallDisk, sleep};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// A kind of fault. Each kind is injected once in this order. `DaemonKilled` is before `ClockSet`
/// because only the next daemon has a clock that the test can set.
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

/// The faults that are chosen at random. `DaemonKilled` is listed twice, so it is chosen twice as
/// often as each other fault.
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

/// Time between two kills of the tmux server.
const TMUX_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two full disks.
const DISK_INTERVAL: Duration = Duration::from_secs(90);

/// The next faults, and how often each kind has hit.
pub(super) struct FaultSchedule<'d> {
    disk: Option<&'d SmallDisk>,
    /// The kinds that have not hit yet.
    first: VecDeque<SoakFault>,
    next_tmux_kill: Instant,
    next_full_disk: Instant,
    hits: BTreeMap<SoakFault, u64>,
}

impl<'d> FaultSchedule<'d> {
    /// Creates a schedule with the faults that are possible on this machine. The disk is never full
    /// if `disk` is `None`, and the clock never jumps without `has_clock_control`.
    pub(super) fn new(disk: Option<&'d SmallDisk>, has_clock_control: bool) -> FaultSchedule<'d> {
        let watches = harness::can_limit_watches();
        let is_possible = |kind: &SoakFault| match kind {
            DiskFull => disk.is_some(),
            ClockSet => has_clock_control,
            WatchesExhausted => watches,
            _ => true,
        };
        let (first, now) = (ALL_FAULTS.into_iter().filter(is_possible).collect(), Instant::now());
        FaultSchedule {
            disk,
            first,
            next_tmux_kill: now + TMUX_INTERVAL,
            next_full_disk: now + DISK_INTERVAL,
            hits: BTreeMap::new(),
        }
    }

    /// Whether each kind has hit once.
    pub(super) fn all_kinds_hit(&self) -> bool {
        self.first.is_empty()
    }

    /// Chooses the next fault. In the calm phase no fault ends the daemon or the tmux server.
    pub(super) fn next(&mut self, rng: &mut fastrand::Rng, calm: bool) -> SoakFault {
        let now = Instant::now();
        if let Some(kind) = self.first.front() {
            return *kind;
        }
        if !calm && now > self.next_tmux_kill {
            self.next_tmux_kill += TMUX_INTERVAL;
            return TmuxKilled;
        }
        if self.disk.is_some() && now > self.next_full_disk {
            self.next_full_disk += DISK_INTERVAL;
            return DiskFull;
        }
        match RANDOM_FAULTS[rng.usize(0..RANDOM_FAULTS.len())] {
            DaemonKilled | DaemonSignalled | WatchesExhausted if calm => StatusCommandKilled,
            kind => kind,
        }
    }

    /// Injects a fault, and counts it if it has hit. A fault misses if its target does not exist. A
    /// kind that has never hit stays the next one.
    pub(super) fn inject(&mut self, kind: SoakFault, faults: &mut FaultInjector<'_>) {
        if !self.inject_fault(kind, faults) {
            return;
        }
        *self.hits.entry(kind).or_default() += 1;
        if self.first.front() == Some(&kind) {
            self.first.pop_front();
        }
    }

    fn inject_fault(&self, kind: SoakFault, faults: &mut FaultInjector<'_>) -> bool {
        let span = Duration::from_millis(faults.rng.u64(200..1_500));
        let jump = faults.rng.i64(-3_600..3_600);
        match kind {
            DaemonKilled => faults.kill(FaultTarget::Daemon).is_some(),
            DaemonSignalled => faults.signal_daemon().is_some(),
            ShimKilled => faults.kill(FaultTarget::Shim).is_some(),
            AgentKilled => faults.kill(FaultTarget::Agent).is_some(),
            TmuxKilled => faults.kill(FaultTarget::Tmux).is_some(),
            DaemonStopped => faults.stop(FaultTarget::Daemon, span).is_some(),
            ShimStopped => faults.stop(FaultTarget::Shim, span).is_some(),
            AgentStopped => faults.stop(FaultTarget::Agent, span).is_some(),
            WatchesExhausted => faults.restart_without_watches().is_some(),
            DescriptorsExhausted => faults.limit_descriptors(span),
            ClockSet => faults.set_clock(jump),
            DiskFull => self.disk.is_some_and(|disk| fill_disk(disk, faults)),
            KillCommandKilled => run_and_kill(faults, &["kill", "k0"]),
            TaskCommandKilled => {
                run_and_kill(faults, &["task", "create", "idle", "--metadata", "{\"command\": \"true\"}"])
            }
            StatusCommandKilled => run_and_kill(faults, &["status"]),
        }
    }

    /// How often each kind has hit.
    pub(super) fn counts(&self) -> &BTreeMap<SoakFault, u64> {
        &self.hits
    }
}

fn run_and_kill(faults: &mut FaultInjector<'_>, args: &[&str]) -> bool {
    faults.run_and_kill(args) == InterruptedCall::Killed
}

fn fill_disk(disk: &SmallDisk, faults: &FaultInjector<'_>) -> bool {
    faults.log("the disk is full for 2 s");
    disk.fill();
    sleep(Duration::from_secs(2));
    disk.free();
    true
}
