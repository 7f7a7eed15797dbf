//! Causes of `teamctl why`: ann is not running.

use super::{
    assert_first_cause, create_task, run_suggested_command, shim_pid, spawn_idle_agent, wait_until_idle,
};
use harness::TestEnv;

#[test]
fn suspended() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["down", "--suspend"]).expect_success();
    env.start_daemon();
    let output = run_suggested_command(&env, &assert_first_cause(&env, "suspended"));
    assert!(output.contains("ann runs again in pane"), "{output}");
    env.shut_down();
}

#[test]
fn budget_exhausted() {
    let env = TestEnv::new();
    env.start_daemon();
    let policy = env.write_file("out/policy.toml", "[policy]\nmax_turns = 1\n");
    env.teamctl(["create", "survey", "--policy", &policy]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    create_task(&env, "true");
    let cause = assert_first_cause(&env, "budget_exhausted");
    assert_eq!(cause["next"], serde_json::json!(["teamctl policy FILE", "teamctl up --resume"]), "{cause}");
    env.shut_down();
}

#[test]
fn killed_by_command() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.teamctl(["kill", "ann"]).expect_success();
    run_suggested_command(&env, &assert_first_cause(&env, "exited"));
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let cause = assert_first_cause(&env, "exited");
    assert!(cause["evidence"][0].as_str().unwrap().contains("ended"), "{cause}");
    env.shut_down();
}

#[test]
fn restarts_exhausted() {
    let env = TestEnv::with_team();
    let spawn = |restart: &str| {
        env.teamctl(["spawn", "ann", "--restart", restart, "--", "sh", "-c", "echo no; exit 3"])
            .expect_success();
    };
    // The pauses double, so one of them is long enough to be seen.
    spawn("on-failure:20");
    run_suggested_command(&env, &assert_first_cause(&env, "restarting"));
    env.teamctl(["kill", "ann"]).expect_success();
    spawn("on-failure:2");
    let cause = assert_first_cause(&env, "respawns_exhausted");
    assert!(cause["evidence"][1].as_str().unwrap().contains("exit 3"), "{cause}");
    assert!(run_suggested_command(&env, &cause).contains("no"));
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.contains("not started again: it failed 3 times in an hour"), "{status}");
    env.shut_down();
}

#[test]
fn pane_closed_by_hand() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    env.tmux(["kill-pane", "-t", &pane]);
    assert!(run_suggested_command(&env, &assert_first_cause(&env, "pane_closed")).contains("here"));
    env.shut_down();
}

#[test]
fn program_exited() {
    let env = TestEnv::with_team();
    let program = env.write_script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    env.write_profile("brief", &format!("delivery = 'turn'\nprogram = '{program}'\n"));
    env.teamctl(["spawn", "ann", "--profile", "brief", "--prompt", "one"]).expect_success();
    wait_until_idle(&env);
    env.teamctl(["send", "ann", "two"]).expect_success();
    let cause = assert_first_cause(&env, "program_missing");
    assert!(cause["evidence"][0].as_str().unwrap().contains("prog"), "{cause}");
    run_suggested_command(&env, &cause);
    env.shut_down();
}

#[test]
fn tmux_server_died() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&env);
    assert!(shim_pid(&env) > 0);
    env.kill_process(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    let cause = assert_first_cause(&env, "tmux_gone");
    env.start_tmux_server("user");
    assert!(run_suggested_command(&env, &cause).contains("ann runs again in pane"));
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}
