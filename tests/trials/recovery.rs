//! The daemon of twenty agents is killed, and the next one has all of them back, the same processes, however long they
//! were alone. How long that takes is told, and measured by `make bench`.
//!
//! `RECOVERIES=n` says how often.

use harness::{House, Recovery, figure, quantile, rounds};
use std::time::Duration;

const AGENTS: usize = 20;

/// Half of them in panes.
fn twenty() -> House {
    let house = House::with_team();
    for n in 0..AGENTS {
        let (name, agent) = (format!("a{n}"), house.agent());
        let backend = if n % 2 == 0 { "tmux" } else { "in-process" };
        house.teamctl(["spawn", &name, "--backend", backend, "--", &agent, "stay"]).ok();
    }
    house
}

fn pids(house: &House) -> Vec<u64> {
    let status = house.json(["status"]);
    status["teams"][0]["members"].as_array().unwrap().iter().filter_map(|m| m["pid"].as_u64()).collect()
}

#[test]
#[allow(clippy::print_stderr, reason = "how long it took is told, and judged elsewhere")]
fn twenty_agents_are_back_after_each_kill_of_their_daemon() {
    let (house, times) = (twenty(), rounds("RECOVERIES", 10));
    let mut rng = fastrand::Rng::with_seed(rounds("SEED", 1));
    let mut recovery = Recovery::of(&house);
    let before = pids(&house);
    let mut took: Vec<Duration> = (0..times)
        .map(|_| {
            let took = recovery.round(AGENTS, Duration::from_millis(rng.u64(0..600)));
            assert_eq!(pids(&house), before, "the same processes");
            took
        })
        .collect();
    let last = recovery.end();
    house.end();
    last.unwrap().wait().unwrap();
    let (half, most) = (quantile(&mut took, 50), quantile(&mut took, 99));
    eprintln!("recovery of {AGENTS} agents, {times} times: p50 {half:.0?}, p99 {most:.0?}");
    figure("recoveries", times);
    figure("recovery-p99-ms", most.as_millis() as u64);
}
