//! Everything at once, for as long as `MIN` says (minutes; without it twenty seconds, and until each kind of strike has
//! hit): agents, senders, readers and foreign writers; every two seconds or so somebody is killed or stopped, or the
//! daemon gets no descriptor or no watches, or its clock jumps, or the disk is full: each of these once in turn, and then by chance
//! (`soak/strikes.rs`). What the daemon holds is watched each second. In the last third it is left alive, and what it
//! holds must not grow; and in the end it has no more open than one that has just begun.

mod fault_schedule;

use crate::foreign_writers::{ForeignWriters, PACED_PLAN};
use crate::message_traffic::{MessageTraffic, count_stored};
use crate::workers::{WorkerProgram, WorkerSpec, names, respawn_missing};
use fault_schedule::{FaultSchedule, SoakFault};
use harness::history::InboxSnapshot;
use harness::{
    FaultInjector, FaultTarget, ProcessStats, SmallDisk, TestEnv, can_limit_watches, checker, iterations,
    record_result, record_skip, sleep,
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
/// Of the small disk, MiB.
const DISK: u32 = 256;

/// How long it lasts: two thirds, or until each kind has hit; then the calm, in which the daemon lives.
struct SoakPhases {
    started: Instant,
    total: Duration,
    calm_from: OnceLock<Instant>,
}

impl SoakPhases {
    /// # Panics
    /// Where some kind has not hit in so long.
    fn update(&self, strikes: &FaultSchedule<'_>) {
        let long = self.started.elapsed() > self.total * 2 + Duration::from_secs(120);
        assert!(strikes.all_kinds_hit() || !long, "not each kind has hit: {:?}", strikes.counts());
        if strikes.all_kinds_hit() && self.started.elapsed() > self.total * 2 / 3 {
            self.calm_from.get_or_init(Instant::now);
        }
    }

    fn is_calm(&self) -> bool {
        self.calm_from.get().is_some()
    }

    fn is_over(&self) -> bool {
        self.calm_from.get().is_some_and(|from| from.elapsed() > self.total / 3)
    }
}

/// What was seen of the daemon, each second.
#[derive(Default)]
struct DaemonObservations {
    max_stats: ProcessStats,
    /// In the calm, of the one daemon that lives in it: at each second.
    calm: Vec<ProcessStats>,
    daemon: u32,
    locks: BTreeMap<(PathBuf, u64), Instant>,
    violations: Vec<String>,
}

impl DaemonObservations {
    fn observe(&mut self, env: &TestEnv, daemon: Option<u32>, calm: bool) {
        if let Some((pid, vitals)) = daemon.and_then(|pid| Some((pid, ProcessStats::read(pid)?))) {
            self.max_stats = self.max_stats.fieldwise_max(vitals);
            if calm {
                self.observe_idle_memory(pid, vitals);
            }
            let bounds = [
                ("descriptors", vitals.descriptors, 150),
                ("kB resident", vitals.resident, 65_536),
                ("threads", vitals.threads, 20),
                ("zombies", vitals.zombies, 12),
            ];
            let beyond = bounds.into_iter().filter(|(_, is, bound)| is > bound);
            self.violations.extend(beyond.map(|(what, is, bound)| format!("{is} {what}, more than {bound}")));
        }
        self.observe_locks(env);
        self.observe_logs(&env.path("state"));
    }

    fn observe_idle_memory(&mut self, pid: u32, vitals: ProcessStats) {
        if self.calm.is_empty() {
            self.daemon = pid;
        } else if pid != self.daemon {
            self.violations.push(format!("the daemon {} did not live through the calm", self.daemon));
        }
        self.calm.push(vitals);
    }

    /// A lock is somebody's for a moment; what the dead leave is taken over within twelve seconds by whoever comes.
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
        let old = self.locks.iter().filter(|(_, since)| since.elapsed() > Duration::from_secs(40));
        self.violations.extend(old.map(|(lock, since)| format!("{lock:?} for {:.0?}", since.elapsed())));
    }

    /// Ten logs of ten MiB each, and two parts of the event log of seven.
    fn observe_logs(&mut self, state: &Path) {
        let is_log =
            |path: &Path| [".log", "events.jsonl"].iter().any(|of| path.to_string_lossy().contains(of));
        let logs: Vec<_> =
            files_below(state).into_iter().filter(|(path, meta)| meta.is_file() && is_log(path)).collect();
        let own = logs
            .iter()
            .filter(|(path, _)| path.parent().is_some_and(|of| of.ends_with("logs/teamd")))
            .count();
        if own > 11 {
            self.violations.push(format!("{own} logs of the daemon"));
        }
        let large = logs.iter().filter(|(_, meta)| meta.len() > 11 << 20);
        self.violations
            .extend(large.map(|(path, meta)| format!("{} has {} bytes", path.display(), meta.len())));
    }

    /// What was resident in the last third of the calm beyond what was in its first, kB: the least of that, since calls
    /// come and go, than the middle of this, since a daemon that has just begun has nobody yet.
    fn memory_growth(&self) -> i64 {
        let third = self.calm.len() / 3;
        let mut first: Vec<i64> = self.calm[..third].iter().map(|vitals| vitals.resident as i64).collect();
        first.sort_unstable();
        let last = self.calm[self.calm.len() - third..].iter().map(|vitals| vitals.resident as i64).min();
        last.zip(first.get(third / 2)).map_or(0, |(least, middle)| least - middle)
    }
}

/// What the daemon has open where everybody is there, and nobody does anything.
fn descriptors_when_idle(env: &TestEnv) -> Vec<String> {
    env.wait_until("everybody is connected", || {
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?.clone();
        let there = members.iter().filter(|member| member["lifecycle"] == "running").count();
        (there == WORKERS.len()).then_some(())
    });
    env.wait_until_quiet(Duration::from_millis(300));
    open_descriptors(env.daemon_pid())
}

/// The same of a daemon that has just begun. Every other one has a pane: the second is as the one before the first.
fn descriptors_of_new_daemon(env: &TestEnv, nemesis: &mut FaultInjector<'_>) -> Vec<String> {
    for _ in 0..2 {
        nemesis.kill(FaultTarget::Daemon);
        nemesis.ensure_daemon();
        nemesis.wait_until_consistent();
    }
    descriptors_when_idle(env)
}

fn open_descriptors(pid: u32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut all: Vec<String> =
        all.filter_map(|fd| Some(std::fs::read_link(fd.path()).ok()?.display().to_string())).collect();
    all.sort();
    all
}

fn files_below(directory: &Path) -> Vec<(PathBuf, std::fs::Metadata)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| Some((entry.path(), entry.path().symlink_metadata().ok()?)));
    found
        .flat_map(|(path, meta)| {
            let inside = if meta.is_dir() { files_below(&path) } else { Vec::new() };
            inside.into_iter().chain([(path, meta)])
        })
        .collect()
}

/// Where the environment may lie, and where a small disk can be had.
fn new_env(disk: Option<&SmallDisk>) -> TestEnv {
    let env = disk.map_or_else(TestEnv::new, |disk| TestEnv::in_directory(disk.path()));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    respawn_missing(&env, &WORKERS, &BTreeSet::new());
    env
}

/// All of it, until the time is over; what was seen of the daemon meanwhile, and of the inboxes.
fn run_load(
    post: &MessageTraffic<'_>,
    nemesis: &mut FaultInjector<'_>,
    strikes: &mut FaultSchedule<'_>,
    whole: Duration,
) -> (DaemonObservations, Vec<InboxSnapshot>) {
    let env = post.env;
    let times = &SoakPhases { started: Instant::now(), total: whole, calm_from: OnceLock::new() };
    let mut others = ForeignWriters::new(env, "survey", PACED_PLAN);
    let (rings, bells): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    let (seen, looks) = std::thread::scope(|scope| {
        let reading =
            |(me, bell): (&'static str, Receiver<()>)| scope.spawn(move || post.run_reader(me, &bell));
        let readers: Vec<_> = READERS.into_iter().zip(bells).map(reading).collect();
        let (goes, bells): (Vec<_>, Vec<_>) = (0..SENDERS).map(|_| sync_channel(1)).unzip();
        let senders: Vec<_> = bells
            .into_iter()
            .enumerate()
            .map(|(n, bell)| {
                let (rings, rng) = (rings.clone(), nemesis.rng.fork());
                scope.spawn(move || post.run_sender(&format!("s{n}"), 1, rng, &bell, &rings))
            })
            .collect();
        let (stop_ticks, ticked) = channel::<()>();
        let ticker = scope.spawn(move || signal_senders(&goes, &ticked));
        let (stop_watch, watched) = channel::<()>();
        let watcher = scope.spawn(move || observe_daemon(env, times, &watched));
        others.start_all();
        while !times.is_over() {
            times.update(strikes);
            sleep(Duration::from_millis(nemesis.rng.u64(500..2_500)));
            let kind = strikes.next(&mut nemesis.rng, times.is_calm());
            if kind == SoakFault::DiskFull {
                others.stop_all();
            }
            strikes.inject(kind, nemesis);
            if others.are_stopped() {
                others.start_all();
            }
            nemesis.ensure_daemon();
            respawn_missing(env, &WORKERS, &nemesis.wait_until_consistent())
                .into_iter()
                .for_each(|who| post.record_name_reuse(who));
        }
        others.stop_all();
        drop((stop_ticks, stop_watch));
        ticker.join().unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(rings);
        let looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>();
        (watcher.join().unwrap(), looks)
    });
    others.check();
    (seen, looks)
}

/// Rings all senders four times a second; one that is still busy is not rung twice.
fn signal_senders(goes: &[SyncSender<()>], stop: &Receiver<()>) {
    while stop.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
        for go in goes {
            go.try_send(()).ok();
        }
    }
}

fn observe_daemon(env: &TestEnv, times: &SoakPhases, stop: &Receiver<()>) -> DaemonObservations {
    let mut watched = DaemonObservations::default();
    while stop.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        // Asked first: who lives when the calm has begun is who lives in it.
        let calm = times.is_calm();
        watched.observe(env, env.daemon_process(), calm);
    }
    watched
}

#[test]
#[allow(clippy::print_stderr, reason = "a summary for whoever reads it")]
fn soak_loses_nothing_and_does_not_grow() {
    let whole = Duration::from_secs(iterations("MIN", 0) * 60).max(Duration::from_secs(20));
    let disk = SmallDisk::mount(DISK);
    if disk.is_none() {
        record_skip("full-disks", "no right to mount a small file system");
    }
    let diaries = tempfile::tempdir().unwrap();
    let env = new_env(disk.as_ref());
    let mut nemesis = FaultInjector::new(&env, iterations("SEED", 1));
    let clock = nemesis.enable_clock_control();
    if !clock {
        record_skip("clock-jumps", "libfaketime is not installed");
    }
    if !can_limit_watches() {
        record_skip("few-watches", "no user namespaces for us");
    }
    let mut strikes = FaultSchedule::new(disk.as_ref(), clock);
    let post = MessageTraffic { env: &env, history_dir: diaries.path().to_owned(), readers: &READERS };
    let (watched, looks) = run_load(&post, &mut nemesis, &mut strikes, whole);
    nemesis.ensure_daemon();
    respawn_missing(&env, &WORKERS, &nemesis.wait_until_consistent())
        .into_iter()
        .for_each(|who| post.record_name_reuse(who));
    let history = post.collect_history(looks, names(&WORKERS), nemesis.wait_until_consistent());
    let (sent, memory) = (count_stored(&history), watched.memory_growth());
    let (old, fresh) = (descriptors_when_idle(&env), descriptors_of_new_daemon(&env, &mut nemesis));
    eprintln!(
        "{sent} messages stored; at most {:?}; in a calm of {} s {memory:+} kB; {} descriptors at rest, of {} at first",
        watched.max_stats,
        watched.calm.len(),
        old.len(),
        fresh.len()
    );
    eprintln!("what went wrong, and how often: {:?}", strikes.counts());
    assert_eq!(watched.violations, [""; 0]);
    assert!(watched.calm.len() >= 3, "nobody saw the calm: {:?}", watched.calm);
    assert_eq!(checker::check(&history), []);
    assert!(old.len() <= fresh.len(), "it has more open than one that has just begun: {old:#?}, {fresh:#?}");
    let allowed = 1_024 + 1_024 * sent as i64 / 100_000;
    assert!(memory <= allowed, "{memory} kB more than in the beginning: {:?}", watched.calm);
    let daemons = nemesis.into_daemons();
    env.shut_down_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    record_result("soaked-seconds", whole.as_secs());
}
