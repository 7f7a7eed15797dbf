//! What the store's steps take beside what other programs do, as rows of `make bench`; by itself each is measured by the
//! benches of this crate. Give TMPDIR to say on which file system.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that fails must stop, and prints"
)]

use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../../benches/bench_team.rs"]
#[allow(dead_code, reason = "the benches use what is not used here")]
mod bench_team;
mod daemon;
mod inboxes;
mod node_baseline;
mod task_lists;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [dir, count] = words.as_slice() {
        return inboxes::write(Path::new(dir), count.parse().unwrap());
    }
    inboxes::appends();
    inboxes::sixteen_writers();
    inboxes::marks_and_lists();
    inboxes::torn_reads();
    inboxes::durabilities();
    task_lists::lists_and_claims();
}

fn row(what: &str, figure: &str, aim: &str) {
    println!("| {what} | {figure} | {aim} |");
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
