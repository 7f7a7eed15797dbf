//! Simulates a team on several hosts: a home and some annexes, with the network between them.
//!
//! Real are: the core of each daemon, its files thread, the state machine of each link with its spool
//! file and frames, the mirrors and their receiver, the watcher's comparison of files, and all files
//! of the team, which are in a temporary directory. Models are: the clock, the daemon's own files
//! (roster, environments, exit reports, event log), tmux, shims and agents, as in the rest of the
//! simulator; the threads of the links; the byte streams between hosts. Not simulated are
//! full disks and kills in the middle of a write. The tests of the crates `link` and `mirror` have
//! these.
//!
//! The seed of a life decides everything. Frames are delayed, connections are cut at any byte with and
//! without notice, hosts are partitioned, daemons are killed and started again, agents end, file
//! events are lost, and wall clocks jump by an hour. Then all faults end. [`invariants`] checks the
//! steps and the quiet end of a life. Each of its checks is shown to fail by a [`defect`].
//!
//! `NETWORK_SEEDS=1000 FIRST=200 cargo test -p teamd network` runs 1,000 lives from the seed 200 on. With
//! `SEED=7` the test runs only the seed 7 and prints the end of its log.

mod agent_work;
mod connections;
mod cpu_clock;
mod defect;
mod host_conditions;
mod inject_defects;
mod invariants;
mod ledger;
mod life;
mod members;
mod network_simulation;
mod run_seeds;
mod scale;
mod scale_faults;
mod scripted_annex;
mod simulated_host;

use crate::simulator::network::defect::DEFECTS;
use crate::simulator::network::run_seeds::{Seeds, run_all, run_seed};
use std::collections::BTreeSet;

/// How many lives `make test` runs.
const DEFAULT_SEEDS: u64 = 30;
/// How many lives are tried until a defect is found.
const DEFECT_SEEDS: u64 = 20;

/// What must occur in [`DEFAULT_SEEDS`] lives.
const COVERED: [&str; 11] = [
    "agent ended",
    "annex killed",
    "claim refused",
    "clock jump",
    "connected",
    "contact lost",
    "cut",
    "home killed",
    "partition",
    "task begun",
    "connect hangs",
];

#[test]
fn promises_of_one_host_hold_on_several() {
    let seeds = Seeds::from_environment(DEFAULT_SEEDS);
    let results = run_all(seeds);
    let failures: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    for line in failures.iter().filter_map(|failure| failure.lines().next()) {
        eprintln!("{line}");
    }
    assert!(
        failures.is_empty(),
        "{} of {} seeds failed; the first:\n{}",
        failures.len(),
        results.len(),
        failures[0]
    );
    let covered: BTreeSet<&str> = results.iter().flatten().flatten().copied().collect();
    let missing: Vec<_> = COVERED.iter().filter(|name| !covered.contains(*name)).collect();
    assert!(results.len() < DEFAULT_SEEDS as usize || missing.is_empty(), "no seed covers {missing:?}");
}

#[test]
fn each_invariant_finds_its_defect() {
    for (defect, text) in DEFECTS {
        let has_text = |failure: &String| failure.lines().next().is_some_and(|line| line.contains(text));
        let mut failures = (0..DEFECT_SEEDS).filter_map(|seed| run_seed(seed, Some(defect)).err());
        assert!(failures.any(|failure| has_text(&failure)), "no life finds that a daemon {defect:?}");
    }
}
