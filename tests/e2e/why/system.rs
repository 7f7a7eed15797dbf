//! Causes of `teamctl why`: the daemon or tmux does not answer, or the disk is full.

use super::{PausedProcess, assert_first_cause, run_suggested_command, spawn_idle_agent};
use harness::{SmallDisk, TestEnv};

#[test]
fn daemon_not_running() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.kill_process(env.daemon_pid());
    let cause = assert_first_cause(&env, "no_daemon");
    assert!(cause["evidence"][0].as_str().unwrap().contains("without a word"), "{cause}");
    run_suggested_command(&env, &cause);
    assert_first_cause(&env, "working");
    env.shut_down();
}

/// The daemon runs outside tmux. In a pane, tmux would continue the stopped daemon at once.
#[test]
fn daemon_stopped() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&env);
    let paused_daemon = PausedProcess::new(teamd.id());
    run_suggested_command(&env, &assert_first_cause(&env, "daemon_unresponsive"));
    assert_first_cause(&env, "working");
    drop(paused_daemon);
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn tmux_stopped() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let paused_server = PausedProcess::new(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    run_suggested_command(&env, &assert_first_cause(&env, "tmux_unresponsive"));
    assert_first_cause(&env, "working");
    drop(paused_server);
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

/// config.json is replaced by a directory, so that the daemon cannot write the file again.
#[test]
#[allow(clippy::disallowed_methods, reason = "another program replaces the file")]
fn config_of_the_whole_team_damaged() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let config = env.root().join("teams/survey/config.json");
    std::fs::rename(&config, env.path("config.json")).unwrap();
    std::fs::create_dir(&config).unwrap();
    env.wait_until("the cause is the config", || {
        let output = env.teamctl(["--json", "why", "-t", "survey"]);
        (output.code == 0 && output.json()["members"][0]["causes"][0]["cause"] == "config_damaged")
            .then_some(())
    });
    std::fs::remove_dir(&config).unwrap();
    std::fs::rename(env.path("config.json"), &config).unwrap();
    env.shut_down();
}
