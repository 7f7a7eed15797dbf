//! Tests that a new daemon adopts all twenty agents of a killed daemon, with the same processes.
//! The agents run without a daemon for a random time. The test records how long the adoption takes;
//! `make bench` measures it too.
//!
//! `RECOVERIES=n` sets the number of kills, `SEED=n` the times without a daemon.

use harness::{RecoveryTimer, TestEnv, number_from_env, quantile, record_result};
use std::time::Duration;

const AGENTS: usize = 20;

/// Creates a team with twenty agents, half of them in panes.
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
    let members = status["teams"][0]["members"].as_array().unwrap();
    members.iter().filter_map(|member| member["pid"].as_u64()).collect()
}

#[test]
#[allow(clippy::print_stderr, reason = "the test prints the times and does not check them")]
fn twenty_agents_are_adopted_after_each_kill() {
    let (env, rounds) = (env_with_twenty_agents(), number_from_env("RECOVERIES", 10));
    let mut rng = fastrand::Rng::with_seed(number_from_env("SEED", 1));
    let mut timer = RecoveryTimer::new(&env);
    let before = agent_pids(&env);
    let mut durations: Vec<Duration> = (0..rounds)
        .map(|_| {
            let duration = timer.measure(AGENTS, Duration::from_millis(rng.u64(0..600)));
            assert_eq!(agent_pids(&env), before, "the agents have the same pids");
            duration
        })
        .collect();
    let last_daemon = timer.into_daemon();
    env.shut_down();
    last_daemon.unwrap().wait().unwrap();
    let (p50, p99) = (quantile(&mut durations, 50), quantile(&mut durations, 99));
    eprintln!("recovery of {AGENTS} agents, {rounds} times: p50 {p50:.0?}, p99 {p99:.0?}");
    record_result("recoveries", rounds);
    record_result("recovery-p99-ms", p99.as_millis() as u64);
}
