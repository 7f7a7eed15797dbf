//! Every operation is run once to see which crash points it passes, then once for each of them with a kill, a full disk or
//! a stop there. Whatever it was: a new daemon is started, the same is asked again, and it is as if it had been done once.
//! The same with recovery itself, and with a second kill in the recovery from the first.
//!
//! `POINTS=n` says how many (250 unless said), `SEED=n` which of them, `ONLY=word` of which operations.

mod case_counter;
mod daemon_syscalls;
mod env_snapshot;
mod failpoint_directory;
mod operations;
mod sweep_env;
mod worktrees;

use case_counter::CaseCounter;
use failpoint_directory::{Failpoint, FailpointAction};
use harness::{iterations, record_result};
use operations::OPERATIONS;
use std::collections::BTreeSet;
use std::time::Duration;
use sweep_env::SweepEnv;

/// One try: what is broken, where, and where its recovery is broken then.
#[derive(Debug, Clone)]
struct FailpointCase {
    /// None: the start of a daemon after a kill.
    operation: Option<usize>,
    at: Failpoint,
    action: FailpointAction,
    /// Kills in the recovery from it.
    then: Vec<Failpoint>,
}

/// All there is to try.
fn all_cases(sweep: &mut SweepEnv, rng: &mut fastrand::Rng, all: bool) -> Vec<FailpointCase> {
    let recovery: Vec<Failpoint> =
        sweep.record_points(None).into_iter().filter(|at| at.program == "teamd").collect();
    let mut cases = Vec::new();
    for at in recovery.iter().filter(|_| operations::all_selected()) {
        let then = vec![at.clone(); if all { 9 } else { 2 }];
        cases.push(FailpointCase { operation: None, at: at.clone(), action: FailpointAction::Kill, then });
    }
    for which in (0..OPERATIONS.len()).filter(|which| OPERATIONS[*which].is_selected()) {
        // What is seen of the files comes in no order, and often.
        let often =
            |at: &Failpoint| at.nth > 2 && ["watch.event", "terminal.line"].contains(&at.name.as_str());
        for at in sweep.record_points(Some(which)).into_iter().filter(|at| !often(at)) {
            let case =
                |deed, then| FailpointCase { operation: Some(which), at: at.clone(), action: deed, then };
            cases.push(case(FailpointAction::Kill, Vec::new()));
            cases.push(case(FailpointAction::Pause, Vec::new()));
            // What the daemon could not write is tried again at its next rescan, 30 s later.
            if at.call && (all || at.program != "teamd") {
                cases.push(case(FailpointAction::Error, Vec::new()));
            }
            if at.program == "teamd" {
                cases.push(case(FailpointAction::Kill, vec![recovery[rng.usize(0..recovery.len())].clone()]));
            }
        }
    }
    cases
}

/// In the loop, its threads and its tasks, each with an operation that passes there; not the one that watches lives, whose
/// word comes before that of who ended, or never.
const PANIC_POINTS: [(&str, usize); 10] = [
    ("effect.file-job", operations::IN_A_PANE),
    ("files.job", operations::IN_A_PANE),
    ("panes.job", operations::IN_A_PANE),
    ("connection.accepted", operations::IN_A_PANE),
    ("connection.received", operations::IN_A_PANE),
    ("connection.write", operations::IN_A_PANE),
    ("watch.event", operations::IN_A_PANE),
    ("watch.command", operations::A_TEAM),
    ("terminal.line", operations::IN_A_PANE),
    ("worktree.job", operations::IN_A_WORKTREE),
];

#[test]
fn panic_ends_the_daemon_and_no_agent() {
    let mut sweep = SweepEnv::new(true);
    for (name, operation) in PANIC_POINTS {
        let at = Failpoint { program: "teamd".to_owned(), name: name.to_owned(), call: false, nth: 1 };
        let case = FailpointCase {
            operation: Some(operation),
            at,
            action: FailpointAction::Panic,
            then: Vec::new(),
        };
        // So that the first to pass is of this operation.
        sweep.env.wait_until_quiet(Duration::from_millis(200));
        assert_eq!(sweep.run_case(&case), 1, "{name} was not passed");
        let log = sweep.env.teamd_log();
        assert!(
            log.contains(&format!("failpoint {name} is armed with panic")),
            "{name}: no panic is in the log"
        );
    }
    sweep.env.shut_down_after_panics();
}

/// Side by side, since most of a try is waiting; each has its share of the cases.
const SHARDS: usize = 2;

/// The operations, and the recovery.
fn all_operations() -> BTreeSet<Option<usize>> {
    (0..OPERATIONS.len()).map(Some).chain([None]).collect()
}

/// So many points, of the cases of one lane; how many were hit, and in which operations somebody was killed at one. A kill
/// of each comes first: a point that is not passed this time is followed by another.
fn run_shard(lane: usize, wanted: u64, all: bool) -> (u64, BTreeSet<Option<usize>>) {
    let (mut sweep, mut seed, mut tally) =
        (SweepEnv::new(true), iterations("SEED", 1), CaseCounter::default());
    let mut killed = BTreeSet::new();
    while tally.hits < wanted {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut cases = all_cases(&mut sweep, &mut rng, all);
        rng.shuffle(&mut cases);
        let mut is_hit = |case: &FailpointCase| {
            let before = tally.hits;
            tally.count(&mut sweep, true, |sweep| sweep.run_case(case));
            tally.hits > before
        };
        for operation in all_operations() {
            let is_one =
                |case: &&FailpointCase| case.operation == operation && case.action == FailpointAction::Kill;
            if !killed.contains(&operation) && cases.iter().filter(is_one).skip(lane).any(&mut is_hit) {
                killed.insert(operation);
            }
        }
        for case in cases.iter().skip(lane).step_by(SHARDS) {
            if tally.hits >= wanted {
                break;
            }
            tally.count(&mut sweep, true, |sweep| sweep.run_case(case));
        }
        seed += 1_000_000;
    }
    sweep.env.shut_down_after_kills();
    (tally.hits, killed)
}

#[test]
fn operations_complete_once_at_every_failpoint() {
    let wanted = iterations("POINTS", 250);
    let (hits, killed): (Vec<u64>, Vec<BTreeSet<Option<usize>>>) = std::thread::scope(|scope| {
        let share = wanted.div_ceil(SHARDS as u64);
        let lanes: Vec<_> =
            (0..SHARDS).map(|lane| scope.spawn(move || run_shard(lane, share, wanted >= 500))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).unzip()
    });
    for killed in killed {
        assert!(wanted < 250 || killed == all_operations(), "of all operations and the recovery: {killed:?}");
    }
    record_result("crash-points", hits.iter().sum());
}
