//! Compares the store's operations with other programs and prints rows for the table of `make
//! bench`. The benchmarks in `benches` measure the store alone. `$TMPDIR` chooses the file system.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that fails must stop, and prints"
)]

use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../../benches/bench_team.rs"]
#[allow(dead_code, reason = "only the benches use some functions")]
mod bench_team;
mod daemon;
mod inboxes;
mod node_baseline;
mod task_lists;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [dir, count] = args.as_slice() {
        return inboxes::write(Path::new(dir), count.parse().unwrap());
    }
    inboxes::appends();
    inboxes::sixteen_writers();
    inboxes::marks_and_lists();
    inboxes::torn_reads();
    inboxes::durabilities();
    task_lists::lists_and_claims();
}

fn row(label: &str, figure: &str, target: &str) {
    println!("| {label} | {figure} | {target} |");
}

fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn median(count: usize, mut run: impl FnMut(usize)) -> Duration {
    let mut times: Vec<Duration> = (0..count).map(|at| time(|| run(at))).collect();
    times.sort();
    times[count / 2]
}
