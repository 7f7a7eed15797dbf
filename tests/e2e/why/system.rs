//! What it stands on does not answer, or is full.

use super::{PausedProcess, assert_first_cause, run_suggested_command, spawn_idle_agent};
use harness::{SmallDisk, TestEnv};

#[test]
fn daemon_not_running() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    house.kill_process(house.daemon_pid());
    let told = assert_first_cause(&house, "no_daemon");
    assert!(told["evidence"][0].as_str().unwrap().contains("without a word"), "{told}");
    run_suggested_command(&house, &told);
    assert_first_cause(&house, "working");
    house.shut_down();
}

/// In a pane tmux would let it go on at once.
#[test]
fn daemon_stopped() {
    let house = TestEnv::new();
    let mut teamd = house.start_daemon_without_pane();
    house.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&house);
    let stopped = PausedProcess::new(teamd.id());
    run_suggested_command(&house, &assert_first_cause(&house, "daemon_unresponsive"));
    assert_first_cause(&house, "working");
    drop(stopped);
    house.teamctl(["kill", "ann"]).expect_success();
    house.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    house.shut_down();
}

#[test]
fn tmux_stopped() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    let stopped = PausedProcess::new(house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    run_suggested_command(&house, &assert_first_cause(&house, "tmux_unresponsive"));
    assert_first_cause(&house, "working");
    drop(stopped);
    house.shut_down();
}

#[test]
fn disk_full() {
    let Some(disk) = SmallDisk::mount(16) else {
        return harness::record_skip("why-full-disk", "no right to mount a small file system");
    };
    let house = TestEnv::in_directory(disk.path());
    house.start_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    spawn_idle_agent(&house);
    disk.fill();
    run_suggested_command(&house, &assert_first_cause(&house, "disk_full"));
    disk.free();
    assert_first_cause(&house, "working");
    house.shut_down();
}

/// A directory in the place of config.json: the daemon cannot write the file again.
#[test]
fn config_of_the_whole_team_damaged() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    let config = house.root().join("teams/survey/config.json");
    std::fs::rename(&config, house.path("config.json")).unwrap();
    std::fs::create_dir(&config).unwrap();
    house.wait_until("the cause is the config", || {
        let ran = house.teamctl(["--json", "why", "-t", "survey"]);
        (ran.code == 0 && ran.json()["members"][0]["causes"][0]["cause"] == "config_damaged").then_some(())
    });
    std::fs::remove_dir(&config).unwrap();
    std::fs::rename(house.path("config.json"), &config).unwrap();
    house.shut_down();
}
