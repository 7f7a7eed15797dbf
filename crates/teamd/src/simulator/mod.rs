//! A world without a machine: the step function with a clock, a disk, a tmux server and processes that are made up.
//!
//! A seed decides everything: who asks what, in which order things happen that could happen in any, what fails, when
//! the daemon is killed. So a seed that shows a fault is all it takes to see it again. While the world goes its way,
//! and after it has come to rest, the [`audit`] says what must hold.
//!
//! `SEEDS=20000 cargo test -p teamd sim` runs that many (200 unless said), `SEED=7` runs that one and prints its story.

mod clients;
mod coverage;
mod disk;
mod effect_runner;
mod faults;
mod hooked_programs;
mod invariants;
mod member_requests;
mod processes;
mod random_calls;
mod scan_memory;
mod scenario;
mod shim;
mod simulation;
mod team_files;
mod tmux;
mod turn_agents;
mod worktrees;

use crate::core::id;
use crate::simulator::coverage::Coverage;
use crate::simulator::simulation::{LogLevel, Simulation};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that have shown a fault once.
const REGRESSION_SEEDS: &str = include_str!("regression_seeds.txt");

/// Of so many seeds each thing that there is must be seen.
const FULL_COVERAGE_SEEDS: usize = 15_000;

/// One world from its beginning to its end, and what it went through; where something did not hold, what, and the end of its
/// story.
fn run_seed(seed: u64) -> Result<Coverage, String> {
    let alone = env_number("SEED").is_some();
    let (world, lived_well) =
        run_simulation(Simulation::new(seed, if alone { LogLevel::All } else { LogLevel::Off }));
    if alone {
        println!("{}", world.log_text());
    }
    let Err(what) = lived_well else { return Ok(world.coverage) };
    // Once more, with somebody who writes it down: it goes the same way.
    let (world, again) = run_simulation(Simulation::new(seed, LogLevel::Tail));
    assert_eq!(again.as_ref(), Err(&what), "seed {seed} goes another way the second time");
    Err(format!("seed {seed}: {what}\nThe end of its story:\n{}", world.log_text()))
}

/// What these worlds went through, and the stories of those that failed.
fn run_seeds<'a>(seeds: impl Iterator<Item = &'a u64>) -> (BTreeSet<&'static str>, Vec<String>) {
    let (mut seen, mut failed) = (BTreeSet::new(), Vec::new());
    for seed in seeds {
        match run_seed(*seed) {
            Ok(list) => seen.extend(list.0),
            Err(story) => failed.push(story),
        }
    }
    (seen, failed)
}

fn run_simulation(mut world: Simulation) -> (Simulation, Result<(), String>) {
    id::set_uuid_counter(world.seed << 20);
    let lived = catch_unwind(AssertUnwindSafe(|| scenario::run_scenario(&mut world)));
    let what = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned())
        }
    };
    (world, lived.map_err(what))
}

/// For the table of the promises, as `tests/harness/figures.rs` has it.
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
fn whatever_happens_in_whatever_order_no_promise_is_broken() {
    let known = REGRESSION_SEEDS.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    let first = env_number("FIRST").unwrap_or(0);
    let seeds: Vec<u64> = match env_number("SEED") {
        Some(seed) => vec![seed],
        None => known.chain(first..first + env_number("SEEDS").unwrap_or(200)).collect(),
    };
    // Told below, with their stories.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (seen, failed): (BTreeSet<&str>, Vec<String>) = std::thread::scope(|scope| {
        let share = |thread: usize| seeds.iter().skip(thread).step_by(threads);
        let run = |thread| scope.spawn(move || run_seeds(share(thread)));
        let running: Vec<_> = (0..threads).map(run).collect();
        let (seen, failed): (Vec<_>, Vec<_>) =
            running.into_iter().map(|thread| thread.join().unwrap()).unzip();
        (seen.into_iter().flatten().collect(), failed.concat())
    });
    drop(std::panic::take_hook());
    for what in failed.iter().filter_map(|story| story.lines().next()) {
        eprintln!("{what}");
    }
    assert!(failed.is_empty(), "{} of {} seeds failed; the first:\n{}", failed.len(), seeds.len(), failed[0]);
    write_figures(seeds.len());
    if seeds.len() >= FULL_COVERAGE_SEEDS {
        let unseen: Vec<_> = coverage::all_names().into_iter().filter(|name| !seen.contains(name)).collect();
        assert!(unseen.is_empty(), "no world goes through {unseen:?}");
    }
}
