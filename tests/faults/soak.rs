//! Runs agents, senders, readers and foreign writers at the same time, and injects a fault every
//! few seconds: a process is killed or stopped, the daemon gets no descriptors or no watches, its
//! clock jumps, or the disk is full. `soak/fault_schedule.rs` chooses the faults, each kind once
//! and then at random.
//!
//! The daemon's resource usage is checked each second, and the message history at the end. In the
//! last third of the time, the calm phase, the daemon is not killed, and its memory must not grow.
//! At the end it must not have more open descriptors than a new daemon.
//!
//! `MIN=n` sets the duration in minutes, `SEED=n` chooses the faults. Without `MIN` the test runs
//! for twenty seconds. It runs longer if a kind of fault has not hit yet.

mod fault_schedule;

use crate::foreign_writers::{ForeignWriters, PACED_PLAN};
use crate::message_traffic::{MessageTraffic, count_stored};
use crate::workers::{WorkerProgram, WorkerSpec, names, respawn_missing};
use fault_schedule::{FaultSchedule, SoakFault};
use harness::history::InboxSnapshot;
use harness::{
    FaultInjector, FaultTarget, ProcessStats, SmallDisk, TestEnv, can_limit_watches, checker,
    number_from_env, record_result, record_skip, sleep,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

const WORKERS: [WorkerSpec; 10] = [
    WorkerSpec("r0", "in-process", WorkerProgram::Idle),
    WorkerSpec("r1", "tmux", WorkerProgram::Idle),
    WorkerSpec("r2", "in-process", WorkerProgram::Idle),
    WorkerSpec("r3", "tmux", WorkerProgram::Idle),
    WorkerSpec("k0", "tmux", WorkerProgram::Idle),
    WorkerSpec("k1", "tmux", WorkerProgram::Idle),
    WorkerSpec("k2", "window", WorkerProgram::Idle),
    WorkerSpec("w0", "tmux", WorkerProgram::Worker),
    WorkerSpec("w1", "in-process", WorkerProgram::Worker),
    WorkerSpec("w2", "in-process", WorkerProgram::Worker),
];
const READERS: [&str; 4] = ["r0", "r1", "r2", "r3"];
const SENDERS: usize = 8;
/// Size of the small disk, in MiB.
const DISK_SIZE: u32 = 256;

/// The two phases of the test. The load phase lasts two thirds of the time, or longer until each
/// kind of fault has hit. In the calm phase after it, the daemon is not killed.
struct SoakPhases {
    start: Instant,
    total: Duration,
    calm_start: OnceLock<Instant>,
}

impl SoakPhases {
    /// Starts the calm phase when the load phase is over.
    ///
    /// # Panics
    /// If a kind of fault has not hit after more than twice the time.
    fn update(&self, schedule: &FaultSchedule<'_>) {
        let is_overdue = self.start.elapsed() > self.total * 2 + Duration::from_secs(120);
        assert!(
            schedule.all_kinds_hit() || !is_overdue,
            "a kind of fault has not hit: {:?}",
            schedule.counts()
        );
        if schedule.all_kinds_hit() && self.start.elapsed() > self.total * 2 / 3 {
            self.calm_start.get_or_init(Instant::now);
        }
    }

    fn is_calm(&self) -> bool {
        self.calm_start.get().is_some()
    }

    fn is_over(&self) -> bool {
        self.calm_start.get().is_some_and(|start| start.elapsed() > self.total / 3)
    }
}

/// What the checks of each second have found.
#[derive(Default)]
struct DaemonObservations {
    max_stats: ProcessStats,
    /// The resource usage of the daemon in the calm phase, one entry each second.
    calm_stats: Vec<ProcessStats>,
    /// The pid of the daemon in the calm phase.
    calm_pid: u32,
    /// When each lock was first seen, by path and inode.
    locks: BTreeMap<(PathBuf, u64), Instant>,
    violations: Vec<String>,
}

impl DaemonObservations {
    fn observe(&mut self, env: &TestEnv, daemon: Option<u32>, calm: bool) {
        if let Some((pid, stats)) = daemon.and_then(|pid| Some((pid, ProcessStats::read(pid)?))) {
            self.max_stats = self.max_stats.fieldwise_max(stats);
            if calm {
                self.observe_idle_memory(pid, stats);
            }
            let limits = [
                ("descriptors", stats.descriptors, 150),
                ("kB resident", stats.resident, 65_536),
                ("threads", stats.threads, 20),
                ("zombies", stats.zombies, 12),
            ];
            let exceeded = limits.into_iter().filter(|(_, value, limit)| value > limit);
            self.violations
                .extend(exceeded.map(|(unit, value, limit)| format!("{value} {unit}, more than {limit}")));
        }
        self.observe_locks(env);
        self.observe_logs(&env.path("state"));
    }

    fn observe_idle_memory(&mut self, pid: u32, stats: ProcessStats) {
        if self.calm_stats.is_empty() {
            self.calm_pid = pid;
        } else if pid != self.calm_pid {
            self.violations.push(format!("the daemon {} ended in the calm phase", self.calm_pid));
        }
        self.calm_stats.push(stats);
    }

    /// Checks that no lock exists for more than 40 s. The next writer takes over a stale lock
    /// within twelve seconds.
    fn observe_locks(&mut self, env: &TestEnv) {
        let found: Vec<(PathBuf, u64)> = files_below(&env.root())
            .into_iter()
            .filter(|(path, meta)| meta.is_dir() && path.to_string_lossy().ends_with(".lock"))
            .map(|(path, meta)| (path, meta.ino()))
            .collect();
        self.locks.retain(|lock, _| found.contains(lock));
        for lock in found {
            self.locks.entry(lock).or_insert_with(Instant::now);
        }
        let old = self.locks.iter().filter(|(_, first_seen)| first_seen.elapsed() > Duration::from_secs(40));
        self.violations.extend(
            old.map(|(lock, first_seen)| format!("{lock:?} exists for {:.0?}", first_seen.elapsed())),
        );
    }

    /// Checks the number of the daemon's log files and the size of each log file. The daemon keeps
    /// ten log files. A log file has at most 10 MiB, and each part of the event log 7 MiB.
    fn observe_logs(&mut self, state: &Path) {
        let is_log =
            |path: &Path| [".log", "events.jsonl"].iter().any(|part| path.to_string_lossy().contains(part));
        let logs: Vec<_> =
            files_below(state).into_iter().filter(|(path, meta)| meta.is_file() && is_log(path)).collect();
        let daemon_logs = logs
            .iter()
            .filter(|(path, _)| path.parent().is_some_and(|parent| parent.ends_with("logs/teamd")))
            .count();
        if daemon_logs > 11 {
            self.violations.push(format!("{daemon_logs} log files of the daemon"));
        }
        let large = logs.iter().filter(|(_, meta)| meta.len() > 11 << 20);
        self.violations
            .extend(large.map(|(path, meta)| format!("{} has {} bytes", path.display(), meta.len())));
    }

    /// Growth of the resident memory in the calm phase, in kB: the minimum of the last third minus
    /// the median of the first third. The minimum ignores peaks that calls cause. The median
    /// ignores the first moments of a new daemon, which has no members yet.
    fn memory_growth(&self) -> i64 {
        let third = self.calm_stats.len() / 3;
        let mut first: Vec<i64> =
            self.calm_stats[..third].iter().map(|stats| stats.resident as i64).collect();
        first.sort_unstable();
        let last = &self.calm_stats[self.calm_stats.len() - third..];
        let minimum = last.iter().map(|stats| stats.resident as i64).min();
        minimum.zip(first.get(third / 2)).map_or(0, |(minimum, median)| minimum - median)
    }
}

/// Returns the targets of the daemon's open descriptors while all members run and nothing is
/// written.
fn descriptors_when_idle(env: &TestEnv) -> Vec<String> {
    env.wait_until("all members are running", || {
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?.clone();
        let running = members.iter().filter(|member| member["lifecycle"] == "running").count();
        (running == WORKERS.len()).then_some(())
    });
    env.wait_until_quiet(Duration::from_millis(300));
    open_descriptors(env.daemon_pid())
}

/// Returns the same of a new daemon. `ensure_daemon` starts every other daemon in a pane, so the
/// daemon is replaced twice: only the second one is started like the current one.
fn descriptors_of_new_daemon(env: &TestEnv, faults: &mut FaultInjector<'_>) -> Vec<String> {
    for _ in 0..2 {
        faults.kill(FaultTarget::Daemon);
        faults.ensure_daemon();
        faults.wait_until_consistent();
    }
    descriptors_when_idle(env)
}

fn open_descriptors(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets: Vec<String> =
        entries.filter_map(|fd| Some(std::fs::read_link(fd.path()).ok()?.display().to_string())).collect();
    targets.sort();
    targets
}

fn files_below(directory: &Path) -> Vec<(PathBuf, std::fs::Metadata)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let children = entries.filter_map(|entry| Some((entry.path(), entry.path().symlink_metadata().ok()?)));
    children
        .flat_map(|(path, meta)| {
            let descendants = if meta.is_dir() { files_below(&path) } else { Vec::new() };
            descendants.into_iter().chain([(path, meta)])
        })
        .collect()
}

/// Creates an environment with a daemon, a team and the workers, on the small disk if there is one.
fn new_env(disk: Option<&SmallDisk>) -> TestEnv {
    let env = disk.map_or_else(TestEnv::new, |disk| TestEnv::in_directory(disk.path()));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    respawn_missing(&env, &WORKERS, &BTreeSet::new());
    env
}

/// Runs the traffic and injects faults until the time is over. Returns the observations of the
/// daemon and the snapshots of the inboxes.
fn run_load(
    traffic: &MessageTraffic<'_>,
    faults: &mut FaultInjector<'_>,
    schedule: &mut FaultSchedule<'_>,
    duration: Duration,
) -> (DaemonObservations, Vec<InboxSnapshot>) {
    let env = traffic.env;
    let phases = &SoakPhases { start: Instant::now(), total: duration, calm_start: OnceLock::new() };
    let mut foreign_writers = ForeignWriters::new(env, "survey", PACED_PLAN);
    let (reader_signals, reader_inputs): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    let (observations, snapshots) = std::thread::scope(|scope| {
        let start_reader = |(name, signals): (&'static str, Receiver<()>)| {
            scope.spawn(move || traffic.run_reader(name, &signals))
        };
        let readers: Vec<_> = READERS.into_iter().zip(reader_inputs).map(start_reader).collect();
        let (sender_signals, sender_inputs): (Vec<_>, Vec<_>) = (0..SENDERS).map(|_| sync_channel(1)).unzip();
        let senders: Vec<_> = sender_inputs
            .into_iter()
            .enumerate()
            .map(|(n, signals)| {
                let (to_readers, rng) = (reader_signals.clone(), faults.rng.fork());
                scope.spawn(move || traffic.run_sender(&format!("s{n}"), 1, rng, &signals, &to_readers))
            })
            .collect();
        let (stop_timer, timer_stop) = channel::<()>();
        let timer = scope.spawn(move || signal_senders(&sender_signals, &timer_stop));
        let (stop_observer, observer_stop) = channel::<()>();
        let observer = scope.spawn(move || observe_daemon(env, phases, &observer_stop));
        foreign_writers.start_all();
        while !phases.is_over() {
            phases.update(schedule);
            sleep(Duration::from_millis(faults.rng.u64(500..2_500)));
            let kind = schedule.next(&mut faults.rng, phases.is_calm());
            // Foreign writers cannot handle a full disk.
            if kind == SoakFault::DiskFull {
                foreign_writers.stop_all();
            }
            schedule.inject(kind, faults);
            if foreign_writers.are_stopped() {
                foreign_writers.start_all();
            }
            faults.ensure_daemon();
            respawn_missing(env, &WORKERS, &faults.wait_until_consistent())
                .into_iter()
                .for_each(|name| traffic.record_name_reuse(name));
        }
        foreign_writers.stop_all();
        drop((stop_timer, stop_observer));
        timer.join().unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(reader_signals);
        let snapshots = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>();
        (observer.join().unwrap(), snapshots)
    });
    foreign_writers.check();
    (observations, snapshots)
}

/// Signals all senders four times a second. A busy sender gets at most one further signal.
fn signal_senders(senders: &[SyncSender<()>], stop: &Receiver<()>) {
    while stop.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
        for sender in senders {
            sender.try_send(()).ok();
        }
    }
}

fn observe_daemon(env: &TestEnv, phases: &SoakPhases, stop: &Receiver<()>) -> DaemonObservations {
    let mut observations = DaemonObservations::default();
    while stop.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        // The phase is read before the pid. Otherwise the pid could be that of a daemon that was
        // killed just before the calm phase.
        let calm = phases.is_calm();
        observations.observe(env, env.daemon_process(), calm);
    }
    observations
}

#[test]
#[allow(clippy::print_stderr, reason = "a summary for people")]
fn soak_loses_nothing_and_does_not_grow() {
    let duration = Duration::from_secs(number_from_env("MIN", 0) * 60).max(Duration::from_secs(20));
    let disk = SmallDisk::mount(DISK_SIZE);
    if disk.is_none() {
        record_skip("full-disks", "no permission to mount a file system");
    }
    let history_dir = tempfile::tempdir().unwrap();
    let env = new_env(disk.as_ref());
    let mut faults = FaultInjector::new(&env, number_from_env("SEED", 1));
    let has_clock_control = faults.enable_clock_control();
    if !has_clock_control {
        record_skip("clock-jumps", "libfaketime is not installed");
    }
    if !can_limit_watches() {
        record_skip("few-watches", "user namespaces are not available");
    }
    let mut schedule = FaultSchedule::new(disk.as_ref(), has_clock_control);
    let traffic = MessageTraffic { env: &env, history_dir: history_dir.path().to_owned(), readers: &READERS };
    let (observations, snapshots) = run_load(&traffic, &mut faults, &mut schedule, duration);
    faults.ensure_daemon();
    respawn_missing(&env, &WORKERS, &faults.wait_until_consistent())
        .into_iter()
        .for_each(|name| traffic.record_name_reuse(name));
    let history = traffic.collect_history(snapshots, names(&WORKERS), faults.wait_until_consistent());
    let (stored, growth) = (count_stored(&history), observations.memory_growth());
    let (old_descriptors, new_descriptors) =
        (descriptors_when_idle(&env), descriptors_of_new_daemon(&env, &mut faults));
    eprintln!(
        "{stored} messages stored; maximum {:?}; memory growth {growth:+} kB in {} s of the calm phase; \
         {} descriptors when idle, {} in a new daemon",
        observations.max_stats,
        observations.calm_stats.len(),
        old_descriptors.len(),
        new_descriptors.len()
    );
    eprintln!("injected faults: {:?}", schedule.counts());
    assert_eq!(observations.violations, [""; 0]);
    let calm_stats = &observations.calm_stats;
    assert!(calm_stats.len() >= 3, "too few observations in the calm phase: {calm_stats:?}");
    assert_eq!(checker::check(&history), []);
    assert!(
        old_descriptors.len() <= new_descriptors.len(),
        "the daemon has more descriptors than a new one: {old_descriptors:#?}, {new_descriptors:#?}"
    );
    let allowed = 1_024 + 1_024 * stored as i64 / 100_000;
    assert!(growth <= allowed, "the memory grew by {growth} kB: {calm_stats:?}");
    let daemons = faults.into_daemons();
    env.shut_down_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    record_result("soaked-seconds", duration.as_secs());
}
