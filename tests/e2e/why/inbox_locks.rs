//! Its inbox can't be read or written.

use super::{
    assert_cause_for_inbox, assert_first_cause, create_task, run_suggested_command, signal, spawn_idle_agent,
    spawn_worker,
};
use harness::TestEnv;
use std::process::Command;
use std::time::{Duration, SystemTime};

const INBOX: &str = "root/teams/survey/inboxes/ann.json";

fn inbox_lock_path(env: &TestEnv) -> std::path::PathBuf {
    env.path(&format!("{INBOX}.lock"))
}

/// One that obeys this order at a crash point.
fn send_command_at_failpoint(env: &TestEnv, order: &str) -> Command {
    env.write_file("crash/armed", order);
    env.write_file("crash/hits", "");
    let mut command = env.command(harness::programs().join("teamctl"));
    command.args(["send", "ann", "x"]).env("TEAMD_FAILPOINTS", env.path("crash"));
    command
}

#[test]
fn inbox_damaged() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.write_file(INBOX, "[{\"from\": ");
    let told = assert_first_cause(&env, "inbox_damaged");
    assert_eq!(told["next"][0], "teamctl doctor");
    let found = env.teamctl(["doctor"]);
    assert!(found.code != 0 && found.stdout.contains("inboxes/ann.json"), "{found:#?}");
    env.write_file(INBOX, "[]");
    env.shut_down();
}

#[test]
fn lock_stale() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    std::fs::create_dir(inbox_lock_path(&env)).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(inbox_lock_path(&env)).unwrap().set_modified(old).unwrap();
    run_suggested_command(&env, &assert_first_cause(&env, "inbox_lock_stale"));
    assert!(!inbox_lock_path(&env).exists());
    env.shut_down();
}

/// In the instant between its making and the grip on it: it is known for a dead one's at once all the same.
#[test]
fn lock_of_a_killed_sender() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let killed = send_command_at_failpoint(&env, "kill teamctl lock.created 1").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status), Some(9), "{killed:?}");
    assert!(inbox_lock_path(&env).exists());
    run_suggested_command(&env, &assert_first_cause(&env, "inbox_lock_stale"));
    assert!(!inbox_lock_path(&env).exists());
    // Of its half file the next teamd sees to.
    env.shut_down_after_kills();
}

/// A sender of ours is stopped while it has the lock.
#[test]
fn lock_held() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let mut sender = send_command_at_failpoint(&env, "pause teamctl lock.confirmed 1").spawn().unwrap();
    let told = assert_first_cause(&env, "inbox_locked");
    let holder = told["evidence"][1].as_str().unwrap();
    assert!(holder.contains(&format!("process {} (teamctl)", sender.id())), "{told}");
    assert!(run_suggested_command(&env, &told).contains("send ann x"));
    signal(sender.id(), rustix::process::Signal::CONT);
    assert!(sender.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn lock_path_blocked() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.write_file(&format!("{INBOX}.lock"), "4711");
    run_suggested_command(&env, &assert_first_cause(&env, "inbox_lock_blocked"));
    std::fs::remove_file(inbox_lock_path(&env)).unwrap();
    env.shut_down();
}

/// It has to tell the lead how its turn has ended, and goes no further before.
#[test]
fn lead_lock_path_blocked() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    env.write_file("root/teams/survey/inboxes/team-lead.json.lock", "4711");
    create_task(&env, "true");
    let told =
        assert_cause_for_inbox(&env, "inbox_lock_blocked", |sentence| sentence.replace("team-lead", "ann"));
    assert!(told["sentence"].as_str().unwrap().contains("inbox of team-lead"), "{told}");
    run_suggested_command(&env, &told);
    std::fs::remove_file(env.path("root/teams/survey/inboxes/team-lead.json.lock")).unwrap();
    env.wait_until("its end is told", || env.payloads_to_lead("ann", "idle_notification").first().map(drop));
    env.shut_down();
}
