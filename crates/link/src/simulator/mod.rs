//! Deterministic simulator: runs both ends of a link with a simulated clock, network and disks.
//!
//! The seed of a simulation decides everything: the order of events, how many bytes arrive at once,
//! and the faults. Connections are cut at any byte, with and without notice. Processes are killed at
//! any effect, also in the middle of a write, and start again from their files. Disks become full,
//! members start again, and the home moves while the earlier home goes on. [`invariants`] checks each
//! step, and that everything is delivered after the faults.
//!
//! `LINK_SEEDS=20000 cargo test -p teamd-link sim` runs 20,000 seeds instead of 300. With `SEED=7` the
//! test runs only the seed 7. [`exhaustive`] has no seeds: it tries each place for one fault.

mod exhaustive;
mod host;
mod invariants;
mod network;
mod random_actions;
mod simulation;

use crate::simulator::simulation::{LogLevel, run_and_catch};
use std::collections::BTreeSet;

/// What must occur in 300 seeds.
const COVERED: [&str; 21] = [
    "accepted",
    "append",
    "apply failed",
    "apply works",
    "storage failed there",
    "storage works there",
    "connected",
    "cut",
    "disconnected",
    "dropped",
    "kill",
    "move",
    "no hello",
    "refused",
    "refused by other",
    "replace",
    "silent",
    "spool failed",
    "spool works",
    "many items",
    "large items",
];

/// Runs one seed. Returns what has occurred.
fn run_seed(seed: u64) -> Result<BTreeSet<&'static str>, String> {
    let mut simulation = random_actions::create(seed);
    if run_and_catch(&mut simulation, random_actions::run_scenario).is_err() {
        // The second run is the same, with a log.
        simulation = random_actions::create(seed);
        simulation.log_level = LogLevel::Tail;
        let result = run_and_catch(&mut simulation, random_actions::run_scenario);
        return Err(format!("seed {seed}: {}", result.expect_err("a seed gives always the same run")));
    }
    if simulation.hosts[0].wanted > 256 {
        simulation.cover("many items");
    }
    if !simulation.padding.is_empty() {
        simulation.cover("large items");
    }
    Ok(simulation.coverage)
}

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn invariants_hold_for_every_seed() {
    let seeds = match env_number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..env_number("LINK_SEEDS").unwrap_or(300),
    };
    // The failures are printed below, with their seeds.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let run_share =
        |thread: usize| -> Vec<_> { seeds.clone().skip(thread).step_by(threads).map(run_seed).collect() };
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run_share(thread))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    drop(std::panic::take_hook());
    let failures: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(
        failures.is_empty(),
        "{} of {} seeds failed; the first: {}",
        failures.len(),
        results.len(),
        failures[0]
    );
    let covered: BTreeSet<_> = results.into_iter().flatten().flatten().collect();
    let missing: Vec<_> = COVERED.iter().filter(|name| !covered.contains(*name)).collect();
    assert!(seeds.end - seeds.start < 300 || missing.is_empty(), "no seed covers {missing:?}");
}
