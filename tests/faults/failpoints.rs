//! Injects a fault at each failpoint of each operation. Each operation first runs undisturbed,
//! which records the failpoints that it hits. Then it runs once for each of them, and a process is
//! killed or stopped there, or a system call fails as on a full disk. Afterwards a new daemon is
//! started and the operation is repeated. It must then be done exactly once. The start of a daemon
//! is tested in the same way, also with further kills during the recovery from a kill.
//!
//! `POINTS=n` sets the number of hit failpoints (250 by default), `SEED=n` chooses them, and
//! `ONLY=text` selects the operations whose name contains the text.

mod case_counter;
mod daemon_syscalls;
mod env_snapshot;
mod failpoint_directory;
mod operations;
mod sweep_env;
mod worktrees;

use case_counter::CaseCounter;
use failpoint_directory::{Failpoint, FailpointAction};
use harness::{number_from_env, record_result};
use operations::OPERATIONS;
use std::collections::BTreeSet;
use std::time::Duration;
use sweep_env::SweepEnv;

/// One case: an operation, and a fault in it.
#[derive(Debug, Clone)]
struct FailpointCase {
    /// An index in [`OPERATIONS`]. `None` stands for the start of a daemon after a kill.
    operation: Option<usize>,
    failpoint: Failpoint,
    action: FailpointAction,
    /// Failpoints at which the daemons that recover from the fault are killed, one after the other.
    recovery_kills: Vec<Failpoint>,
}

/// Returns all cases. With `exhaustive`, more kills during a recovery and more failed system calls.
fn all_cases(sweep: &mut SweepEnv, rng: &mut fastrand::Rng, exhaustive: bool) -> Vec<FailpointCase> {
    let recovery: Vec<Failpoint> =
        sweep.record_points(None).into_iter().filter(|point| point.program == "teamd").collect();
    let mut cases = Vec::new();
    for point in recovery.iter().filter(|_| operations::all_selected()) {
        cases.push(FailpointCase {
            operation: None,
            failpoint: point.clone(),
            action: FailpointAction::Kill,
            recovery_kills: vec![point.clone(); if exhaustive { 9 } else { 2 }],
        });
    }
    for index in (0..OPERATIONS.len()).filter(|index| OPERATIONS[*index].is_selected()) {
        // File events and terminal output hit their failpoints often and in random order.
        let is_frequent = |point: &Failpoint| {
            point.nth > 2 && ["watch.event", "terminal.line"].contains(&point.name.as_str())
        };
        for point in sweep.record_points(Some(index)).into_iter().filter(|point| !is_frequent(point)) {
            let case = |action, recovery_kills| FailpointCase {
                operation: Some(index),
                failpoint: point.clone(),
                action,
                recovery_kills,
            };
            cases.push(case(FailpointAction::Kill, Vec::new()));
            cases.push(case(FailpointAction::Pause, Vec::new()));
            // The daemon repeats a failed write at its next rescan, up to 30 s later. Such a case
            // is slow.
            if point.is_before_call && (exhaustive || point.program != "teamd") {
                cases.push(case(FailpointAction::Error, Vec::new()));
            }
            if point.program == "teamd" {
                cases.push(case(FailpointAction::Kill, vec![recovery[rng.usize(0..recovery.len())].clone()]));
            }
        }
    }
    cases
}

/// Failpoints in the event loop of the daemon and in its threads and tasks, each with an operation
/// that hits it. The thread that watches processes is not included, because its failpoint may be
/// hit too early or not at all.
const PANIC_POINTS: [(&str, usize); 10] = [
    ("effect.file-job", operations::SPAWN_IN_PANE),
    ("files.job", operations::SPAWN_IN_PANE),
    ("panes.job", operations::SPAWN_IN_PANE),
    ("connection.accepted", operations::SPAWN_IN_PANE),
    ("connection.received", operations::SPAWN_IN_PANE),
    ("connection.write", operations::SPAWN_IN_PANE),
    // The daemon may begin to watch a new team only after the spawn has written the last file.
    ("watch.event", operations::SEND),
    ("watch.command", operations::CREATE_TEAM),
    ("terminal.line", operations::SPAWN_IN_PANE),
    ("worktree.job", operations::SPAWN_IN_WORKTREE),
];

#[test]
fn panic_ends_the_daemon_and_no_agent() {
    let mut sweep = SweepEnv::new(true);
    for (name, operation) in PANIC_POINTS {
        let failpoint =
            Failpoint { program: "teamd".to_owned(), name: name.to_owned(), is_before_call: false, nth: 1 };
        let case = FailpointCase {
            operation: Some(operation),
            failpoint,
            action: FailpointAction::Panic,
            recovery_kills: Vec::new(),
        };
        // The first hit must come from this operation, not from the one before.
        sweep.env.wait_until_quiet(Duration::from_millis(200));
        assert_eq!(sweep.run_case(&case), 1, "{name} was not hit");
        let log = sweep.env.teamd_log();
        assert!(
            log.contains(&format!("failpoint {name} is armed with panic")),
            "{name}: the log has no panic"
        );
    }
    sweep.env.shut_down_after_panics();
}

/// Number of test environments that run in parallel, because most of a case is waiting. Each of
/// them runs a part of the cases.
const SHARDS: usize = 2;

/// All operations, and `None` for the start of a daemon.
fn all_operations() -> BTreeSet<Option<usize>> {
    (0..OPERATIONS.len()).map(Some).chain([None]).collect()
}

/// Runs the cases of one shard until `wanted` failpoints are hit. Returns the number of hits, and
/// the operations in which a process was killed. One kill in each operation comes first. If a
/// failpoint is not hit in this run, another one is tried.
fn run_shard(shard: usize, wanted: u64, exhaustive: bool) -> (u64, BTreeSet<Option<usize>>) {
    let (mut sweep, mut seed, mut counter) =
        (SweepEnv::new(true), number_from_env("SEED", 1), CaseCounter::default());
    let mut operations_killed = BTreeSet::new();
    while counter.hits < wanted {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut cases = all_cases(&mut sweep, &mut rng, exhaustive);
        rng.shuffle(&mut cases);
        let mut is_hit = |case: &FailpointCase| {
            let before = counter.hits;
            counter.count(&mut sweep, true, |sweep| sweep.run_case(case));
            counter.hits > before
        };
        for operation in all_operations() {
            let is_kill =
                |case: &&FailpointCase| case.operation == operation && case.action == FailpointAction::Kill;
            if !operations_killed.contains(&operation)
                && cases.iter().filter(is_kill).skip(shard).any(&mut is_hit)
            {
                operations_killed.insert(operation);
            }
        }
        for case in cases.iter().skip(shard).step_by(SHARDS) {
            if counter.hits >= wanted {
                break;
            }
            counter.count(&mut sweep, true, |sweep| sweep.run_case(case));
        }
        seed += 1_000_000;
    }
    sweep.env.shut_down_after_kills();
    (counter.hits, operations_killed)
}

#[test]
fn operations_complete_once_at_every_failpoint() {
    let wanted = number_from_env("POINTS", 250);
    let (hits, operations_killed): (Vec<u64>, Vec<BTreeSet<Option<usize>>>) = std::thread::scope(|scope| {
        let share = wanted.div_ceil(SHARDS as u64);
        let shards: Vec<_> =
            (0..SHARDS).map(|shard| scope.spawn(move || run_shard(shard, share, wanted >= 500))).collect();
        shards.into_iter().map(|shard| shard.join().unwrap()).unzip()
    });
    for operations in operations_killed {
        assert!(
            wanted < 250 || operations == all_operations(),
            "a process was killed only in these operations: {operations:?}"
        );
    }
    record_result("crash-points", hits.iter().sum());
}
