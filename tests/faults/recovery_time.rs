//! The daemon of twenty agents is killed, and the next one has all of them back, the same processes, however long they
//! were alone. How long that takes is told, and measured by `make bench`.
//!
//! `RECOVERIES=n` says how often.

use harness::{RecoveryTimer, TestEnv, iterations, quantile, record_result};
use std::time::Duration;

const AGENTS: usize = 20;

/// Half of them in panes.
fn env_with_twenty_agents() -> TestEnv {
    let env = TestEnv::with_team();
    for n in 0..AGENTS {
        let (name, agent) = (format!("a{n}"), env.scripted_agent_path());
        let backend = if n % 2 == 0 { "tmux" } else { "in-process" };
        env.teamctl(["spawn", &name, "--backend", backend, "--", &agent, "stay"]).expect_success();
    }
    env
}

fn agent_pids(env: &TestEnv) -> Vec<u64> {
    let status = env.json(["status"]);
    status["teams"][0]["members"].as_array().unwrap().iter().filter_map(|m| m["pid"].as_u64()).collect()
}

#[test]
#[allow(clippy::print_stderr, reason = "how long it took is told, and judged elsewhere")]
fn twenty_agents_are_adopted_after_each_kill() {
    let (env, times) = (env_with_twenty_agents(), iterations("RECOVERIES", 10));
    let mut rng = fastrand::Rng::with_seed(iterations("SEED", 1));
    let mut recovery = RecoveryTimer::new(&env);
    let before = agent_pids(&env);
    let mut took: Vec<Duration> = (0..times)
        .map(|_| {
            let took = recovery.measure(AGENTS, Duration::from_millis(rng.u64(0..600)));
            assert_eq!(agent_pids(&env), before, "the same processes");
            took
        })
        .collect();
    let last = recovery.finish();
    env.shut_down();
    last.unwrap().wait().unwrap();
    let (half, most) = (quantile(&mut took, 50), quantile(&mut took, 99));
    eprintln!("recovery of {AGENTS} agents, {times} times: p50 {half:.0?}, p99 {most:.0?}");
    record_result("recoveries", times);
    record_result("recovery-p99-ms", most.as_millis() as u64);
}
