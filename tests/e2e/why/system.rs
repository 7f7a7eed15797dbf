//! What it stands on does not answer, or is full.

use super::{PausedProcess, assert_first_cause, run_suggested_command, spawn_idle_agent};
use harness::{SmallDisk, TestEnv};

#[test]
fn daemon_not_running() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.kill_process(env.daemon_pid());
    let told = assert_first_cause(&env, "no_daemon");
    assert!(told["evidence"][0].as_str().unwrap().contains("without a word"), "{told}");
    run_suggested_command(&env, &told);
    assert_first_cause(&env, "working");
    env.shut_down();
}

/// In a pane tmux would let it go on at once.
#[test]
fn daemon_stopped() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&env);
    let stopped = PausedProcess::new(teamd.id());
    run_suggested_command(&env, &assert_first_cause(&env, "daemon_unresponsive"));
    assert_first_cause(&env, "working");
    drop(stopped);
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn tmux_stopped() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let stopped = PausedProcess::new(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    run_suggested_command(&env, &assert_first_cause(&env, "tmux_unresponsive"));
    assert_first_cause(&env, "working");
    drop(stopped);
    env.shut_down();
}

#[test]
fn disk_full() {
    let Some(disk) = SmallDisk::mount(16) else {
        return harness::record_skip("why-full-disk", "no right to mount a small file system");
    };
    let env = TestEnv::in_directory(disk.path());
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&env);
    disk.fill();
    run_suggested_command(&env, &assert_first_cause(&env, "disk_full"));
    disk.free();
    assert_first_cause(&env, "working");
    env.shut_down();
}

/// A directory in the place of config.json: the daemon cannot write the file again.
#[test]
#[allow(clippy::disallowed_methods, reason = "another program replaces the file")]
fn config_of_the_whole_team_damaged() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let config = env.root().join("teams/survey/config.json");
    std::fs::rename(&config, env.path("config.json")).unwrap();
    std::fs::create_dir(&config).unwrap();
    env.wait_until("the cause is the config", || {
        let ran = env.teamctl(["--json", "why", "-t", "survey"]);
        (ran.code == 0 && ran.json()["members"][0]["causes"][0]["cause"] == "config_damaged").then_some(())
    });
    std::fs::remove_dir(&config).unwrap();
    std::fs::rename(env.path("config.json"), &config).unwrap();
    env.shut_down();
}
