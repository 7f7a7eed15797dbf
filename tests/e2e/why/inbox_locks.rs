//! Its inbox can't be read or written.

use super::{
    assert_cause_for_inbox, assert_first_cause, create_task, run_suggested_command, signal, spawn_idle_agent,
    spawn_worker,
};
use harness::TestEnv;
use std::process::Command;
use std::time::{Duration, SystemTime};

const INBOX: &str = "root/teams/survey/inboxes/ann.json";

fn inbox_lock_path(house: &TestEnv) -> std::path::PathBuf {
    house.path(&format!("{INBOX}.lock"))
}

/// One that obeys this order at a crash point.
fn send_command_at_failpoint(house: &TestEnv, order: &str) -> Command {
    house.write_file("crash/armed", order);
    house.write_file("crash/hits", "");
    let mut command = house.command(harness::programs().join("teamctl"));
    command.args(["send", "ann", "x"]).env("TEAMD_FAILPOINTS", house.path("crash"));
    command
}

#[test]
fn inbox_damaged() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    house.write_file(INBOX, "[{\"from\": ");
    let told = assert_first_cause(&house, "inbox_damaged");
    assert_eq!(told["next"][0], "teamctl doctor");
    let found = house.teamctl(["doctor"]);
    assert!(found.code != 0 && found.stdout.contains("inboxes/ann.json"), "{found:#?}");
    house.write_file(INBOX, "[]");
    house.shut_down();
}

#[test]
fn lock_stale() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    std::fs::create_dir(inbox_lock_path(&house)).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(inbox_lock_path(&house)).unwrap().set_modified(old).unwrap();
    run_suggested_command(&house, &assert_first_cause(&house, "inbox_lock_stale"));
    assert!(!inbox_lock_path(&house).exists());
    house.shut_down();
}

/// In the instant between its making and the grip on it: it is known for a dead one's at once all the same.
#[test]
fn lock_of_a_killed_sender() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    let killed = send_command_at_failpoint(&house, "kill teamctl lock.created 1").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status), Some(9), "{killed:?}");
    assert!(inbox_lock_path(&house).exists());
    run_suggested_command(&house, &assert_first_cause(&house, "inbox_lock_stale"));
    assert!(!inbox_lock_path(&house).exists());
    // Of its half file the next teamd sees to.
    house.shut_down_after_kills();
}

/// A sender of ours is stopped while it has the lock.
#[test]
fn lock_held() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    let mut sender = send_command_at_failpoint(&house, "pause teamctl lock.confirmed 1").spawn().unwrap();
    let told = assert_first_cause(&house, "inbox_locked");
    let holder = told["evidence"][1].as_str().unwrap();
    assert!(holder.contains(&format!("process {} (teamctl)", sender.id())), "{told}");
    assert!(run_suggested_command(&house, &told).contains("send ann x"));
    signal(sender.id(), rustix::process::Signal::CONT);
    assert!(sender.wait().unwrap().success());
    house.shut_down();
}

#[test]
fn lock_path_blocked() {
    let house = TestEnv::with_team();
    spawn_idle_agent(&house);
    house.write_file(&format!("{INBOX}.lock"), "4711");
    run_suggested_command(&house, &assert_first_cause(&house, "inbox_lock_blocked"));
    std::fs::remove_file(inbox_lock_path(&house)).unwrap();
    house.shut_down();
}

/// It has to tell the lead how its turn has ended, and goes no further before.
#[test]
fn lead_lock_path_blocked() {
    let house = TestEnv::with_team();
    spawn_worker(&house);
    house.write_file("root/teams/survey/inboxes/team-lead.json.lock", "4711");
    create_task(&house, "true");
    let told =
        assert_cause_for_inbox(&house, "inbox_lock_blocked", |sentence| sentence.replace("team-lead", "ann"));
    assert!(told["sentence"].as_str().unwrap().contains("inbox of team-lead"), "{told}");
    run_suggested_command(&house, &told);
    std::fs::remove_file(house.path("root/teams/survey/inboxes/team-lead.json.lock")).unwrap();
    house.wait_until("its end is told", || {
        house.payloads_to_lead("ann", "idle_notification").first().map(drop)
    });
    house.shut_down();
}
