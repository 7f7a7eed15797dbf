//! Runs the random simulations of a team on several hosts (see `life`), one for each seed, and each
//! with a time limit.

use crate::simulator::network::defect::Defect;
use crate::simulator::network::life::run_life;
use crate::simulator::network::network_simulation::NetworkSimulation;
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long the simulation of one seed may take. If it takes longer, one of its steps hangs. Too
/// many steps are not the reason, because the steps are counted and limited.
const LIFE_TIMEOUT: Duration = Duration::from_secs(120);

/// What has occurred in a life, or why it failed.
pub(super) type LifeResult = Result<BTreeSet<&'static str>, String>;

/// The seeds that a test runs.
#[derive(Debug, Clone)]
pub(super) struct Seeds(std::ops::Range<u64>);

impl Seeds {
    /// The seeds from `SEED`, `FIRST` and `SEEDS`.
    pub(super) fn from_environment(default_count: u64) -> Seeds {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let first = number("SEED").or(number("FIRST")).unwrap_or(0);
        let count =
            if number("SEED").is_some() { 1 } else { number("NETWORK_SEEDS").unwrap_or(default_count) };
        Seeds(first..first + count)
    }
}

/// Runs all seeds on all processors.
pub(super) fn run_all(seeds: Seeds) -> Vec<LifeResult> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = |thread: usize| seeds.0.clone().skip(thread).step_by(threads);
    std::thread::scope(|scope| {
        let run =
            |thread| scope.spawn(move || share(thread).map(|seed| run_seed(seed, None)).collect::<Vec<_>>());
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("failures are caught")).collect()
    })
}

/// Runs the simulation of one seed in a thread of its own.
///
/// # Errors
///
/// The seed, the failed check, and the end of the log.
pub(super) fn run_seed(seed: u64, defect: Option<Defect>) -> LifeResult {
    let (sender, result) = channel();
    let run = move || {
        let result = run_with_log(seed, defect);
        sender.send(result).ok();
    };
    // The thread outlives this function if it hangs.
    drop(std::thread::Builder::new().name(format!("life of seed {seed}")).spawn(run));
    match result.recv_timeout(LIFE_TIMEOUT) {
        Ok(result) => result.map_err(|failure| format!("seed {seed}: {failure}")),
        Err(RecvTimeoutError::Timeout) => Err(format!("seed {seed}: the life hangs in one step")),
        Err(RecvTimeoutError::Disconnected) => {
            Err(format!("seed {seed}: the life panicked outside of a step"))
        }
    }
}

/// Runs a life. A failed life runs again with a log.
fn run_with_log(seed: u64, defect: Option<Defect>) -> LifeResult {
    let is_single = std::env::var_os("SEED").is_some();
    if !is_single {
        let result = run(seed, defect, None).0;
        if result.is_ok() || defect.is_some() {
            return result;
        }
    }
    let (result, log) = run(seed, defect, Some(VecDeque::new()));
    if is_single {
        println!("{log}");
    }
    result.map_err(|failure| format!("{failure}\nEnd of the log:\n{log}"))
}

/// Runs a life. Returns its result and its log.
fn run(seed: u64, defect: Option<Defect>, log: Option<VecDeque<String>>) -> (LifeResult, String) {
    let in_memory = Path::new("/dev/shm");
    let dir = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
    let dir = dir.expect("a directory can be made");
    let annexes = 1 + (seed % 3) as usize;
    let mut simulation = NetworkSimulation::new(seed, annexes, dir.path());
    simulation.defect = defect;
    if log.is_some() {
        simulation.hosts.iter_mut().for_each(|host| host.simulation.conditions.log = Some(Vec::new()));
    }
    simulation.log = log;
    let result = catch_unwind(AssertUnwindSafe(|| run_life(&mut simulation, seed)));
    let lines = Vec::from(simulation.log.take().unwrap_or_default()).join("\n");
    let coverage = std::mem::take(&mut simulation.ledger.coverage);
    (result.map(|()| coverage).map_err(|panic| to_message(&*panic)), lines)
}

fn to_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic".to_owned())
}
