//! Random simulations of the daemon.
//!
//! The seed of a simulation decides everything: the calls of clients, the order of events, the
//! faults, and when the daemon is killed. So a seed is enough to reproduce a failure.
//! [`invariants`] checks the state during each simulation and after the simulation has become idle.
//!
//! `SEEDS=20000 cargo test -p teamd sim` runs 20,000 seeds instead of 200. With `SEED=7` the test
//! runs only the seed 7 and prints the log of its simulation.

mod actions;
mod calls;
mod clients;
mod conditions;
mod events_and_effects_covered;
mod faults;
mod file_changes;
mod hooked_programs;
mod invariants;
mod log_of_seed;
mod member_requests;

use crate::core::connection_spawn_and_watch_ids::set_uuid_counter;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::random::events_and_effects_covered::Coverage;
use crate::simulator::random::log_of_seed::{LogLevel, LogOfSeed};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that found a bug, one per line, each with a description of the bug. If the simulator draws
/// its random numbers in another order, a seed gives another simulation and no longer repeats its
/// bug.
const REGRESSION_SEEDS: &str = include_str!("regression_seeds.txt");

/// With at least this number of seeds, every event, effect and job must occur.
const FULL_COVERAGE_SEEDS: usize = 15_000;

/// Runs the simulation of one seed. Returns which events, effects and jobs have occurred.
///
/// # Errors
///
/// The message of the failed check, and the end of the simulation's log.
fn run_seed(seed: u64) -> Result<Coverage, String> {
    let is_single = env_number("SEED").is_some();
    let (simulation, result) = run_simulation(seed, if is_single { LogLevel::All } else { LogLevel::Off });
    if is_single {
        println!("{}", simulation.conditions.log.text());
    }
    let Err(failure) = result else { return Ok(simulation.conditions.coverage) };
    // Most seeds run without a log, which is faster. The second run has the same result and a log.
    let (simulation, second_result) = run_simulation(seed, LogLevel::Tail);
    assert_eq!(second_result.as_ref(), Err(&failure), "seed {seed} is not deterministic");
    Err(format!("seed {seed}: {failure}\nEnd of the log:\n{}", simulation.conditions.log.text()))
}

/// Runs several seeds. Returns the names of everything that occurred, and the failures.
fn run_seeds<'a>(seeds: impl Iterator<Item = &'a u64>) -> (BTreeSet<&'static str>, Vec<String>) {
    let (mut covered, mut failures) = (BTreeSet::new(), Vec::new());
    for seed in seeds {
        match run_seed(*seed) {
            Ok(coverage) => covered.extend(coverage.0),
            Err(failure) => failures.push(failure),
        }
    }
    (covered, failures)
}

/// Runs a simulation and catches the panic of a failed check.
fn run_simulation(seed: u64, level: LogLevel) -> (RandomSimulation, Result<(), String>) {
    let mut simulation = RandomSimulation::of_seed(seed, LogOfSeed::new(level));
    set_uuid_counter(seed << 20);
    let result = catch_unwind(AssertUnwindSafe(|| actions::run_scenario(&mut simulation)));
    let to_message = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned())
        }
    };
    (simulation, result.map_err(to_message))
}

/// Writes the number of simulated seeds to a file in the directory `$FIGURES`, in the format of
/// `tests/harness/results.rs`. Does nothing if the variable is not set.
#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn write_figures(seeds: usize) {
    let Some(directory) = std::env::var_os("FIGURES").map(std::path::PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("seeds.json"), format!("{{\"count\": {seeds}}}")).unwrap();
}

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn invariants_hold_for_every_seed() {
    let regression_seeds = REGRESSION_SEEDS.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    let first = env_number("FIRST").unwrap_or(0);
    let seeds: Vec<u64> = match env_number("SEED") {
        Some(seed) => vec![seed],
        None => regression_seeds.chain(first..first + env_number("SEEDS").unwrap_or(200)).collect(),
    };
    // The failures are printed below, with their seeds.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (covered, failures): (BTreeSet<&str>, Vec<String>) = std::thread::scope(|scope| {
        let share = |thread: usize| seeds.iter().skip(thread).step_by(threads);
        let run = |thread| scope.spawn(move || run_seeds(share(thread)));
        let running: Vec<_> = (0..threads).map(run).collect();
        let (covered, failures): (Vec<_>, Vec<_>) =
            running.into_iter().map(|thread| thread.join().unwrap()).unzip();
        (covered.into_iter().flatten().collect(), failures.concat())
    });
    drop(std::panic::take_hook());
    for message in failures.iter().filter_map(|failure| failure.lines().next()) {
        eprintln!("{message}");
    }
    assert!(
        failures.is_empty(),
        "{} of {} seeds failed; the first:\n{}",
        failures.len(),
        seeds.len(),
        failures[0]
    );
    write_figures(seeds.len());
    if seeds.len() >= FULL_COVERAGE_SEEDS {
        let missing: Vec<_> = events_and_effects_covered::all_names()
            .into_iter()
            .filter(|name| !covered.contains(name))
            .collect();
        assert!(missing.is_empty(), "no seed covers {missing:?}");
    }
}
