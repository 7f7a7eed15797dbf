//! It does not live: how it ended, from whoever knows.

use super::{
    assert_first_cause, create_task, run_suggested_command, shim_pid, spawn_idle_agent, wait_until_idle,
};
use harness::TestEnv;

#[test]
fn suspended() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    house.teamctl(["down", "--suspend"]).expect_success();
    house.start_daemon();
    let told = run_suggested_command(&house, &assert_first_cause(&house, "suspended"));
    assert!(told.contains("ann runs again in pane"), "{told}");
    house.shut_down();
}

#[test]
fn budget_exhausted() {
    let house = TestEnv::new();
    house.start_daemon();
    let policy = house.write_file("out/policy.toml", "[policy]\nmax_turns = 1\n");
    house.teamctl(["create", "survey", "--policy", &policy]).expect_success();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    create_task(&house, "true");
    let told = assert_first_cause(&house, "budget_exhausted");
    assert_eq!(told["next"], serde_json::json!(["teamctl policy FILE", "teamctl up --resume"]), "{told}");
    house.shut_down();
}

#[test]
fn killed_by_command() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    house.teamctl(["kill", "ann"]).expect_success();
    run_suggested_command(&house, &assert_first_cause(&house, "exited"));
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    let told = assert_first_cause(&house, "exited");
    assert!(told["evidence"][0].as_str().unwrap().contains("ended"), "{told}");
    house.shut_down();
}

#[test]
fn restarts_exhausted() {
    let house = TestEnv::with_team();
    house
        .teamctl(["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", "echo no; exit 3"])
        .expect_success();
    run_suggested_command(&house, &assert_first_cause(&house, "restarting"));
    let told = assert_first_cause(&house, "respawns_exhausted");
    assert!(told["evidence"][1].as_str().unwrap().contains("exit 3"), "{told}");
    assert!(run_suggested_command(&house, &told).contains("no"));
    house.shut_down();
}

#[test]
fn pane_closed_by_hand() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["kill-pane", "-t", &pane]);
    assert!(run_suggested_command(&house, &assert_first_cause(&house, "pane_closed")).contains("here"));
    house.shut_down();
}

#[test]
fn program_exited() {
    let house = TestEnv::with_team();
    let program = house.write_script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    house.write_profile("brief", &format!("delivery = 'turn'\nprogram = '{program}'\n"));
    house.teamctl(["spawn", "ann", "--profile", "brief", "--prompt", "one"]).expect_success();
    wait_until_idle(&house);
    house.teamctl(["send", "ann", "two"]).expect_success();
    let told = assert_first_cause(&house, "program_missing");
    assert!(told["evidence"][0].as_str().unwrap().contains("prog"), "{told}");
    run_suggested_command(&house, &told);
    house.shut_down();
}

#[test]
fn tmux_server_died() {
    let house = TestEnv::new();
    let mut teamd = house.start_daemon_without_pane();
    house.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&house);
    assert!(shim_pid(&house) > 0);
    house.kill_process(house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    let told = assert_first_cause(&house, "tmux_gone");
    house.tmux(["new-session", "-d", "-s", "user", "--", "cat", "-"]);
    assert!(run_suggested_command(&house, &told).contains("ann runs again in pane"));
    house.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    house.shut_down();
}
