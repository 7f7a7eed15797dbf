//! Causes of `teamctl why`: an inbox cannot be read or written.

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

/// A `teamctl send ann` that is killed or stopped at a failpoint. `instruction` is the line for the
/// failpoint.
fn send_command_at_failpoint(env: &TestEnv, instruction: &str) -> Command {
    env.write_file("crash/armed", instruction);
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
    let cause = assert_first_cause(&env, "inbox_damaged");
    assert_eq!(cause["next"][0], "teamctl doctor");
    let output = env.teamctl(["doctor"]);
    assert!(output.code != 0 && output.stdout.contains("inboxes/ann.json"), "{output:#?}");
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

/// The sender is killed after it has created the lock and before it has confirmed that it holds the
/// lock. The lock is recognized as stale at once.
#[test]
fn lock_of_a_killed_sender() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let output = send_command_at_failpoint(&env, "kill teamctl lock.created 1").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(9), "{output:?}");
    assert!(inbox_lock_path(&env).exists());
    run_suggested_command(&env, &assert_first_cause(&env, "inbox_lock_stale"));
    assert!(!inbox_lock_path(&env).exists());
    // The next daemon removes the temporary file of the sender.
    env.shut_down_after_kills();
}

/// The holder of the lock is a stopped teamctl.
#[test]
fn lock_held() {
    if harness::skips_without(harness::Facility::LockHolders) {
        return;
    }
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let mut sender = send_command_at_failpoint(&env, "pause teamctl lock.confirmed 1").spawn().unwrap();
    let cause = assert_first_cause(&env, "inbox_locked");
    let holder = cause["evidence"][1].as_str().unwrap();
    assert!(holder.contains(&format!("process {} (teamctl)", sender.id())), "{cause}");
    assert!(run_suggested_command(&env, &cause).contains("send ann x"));
    env.wait_until("the sender has stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", sender.id())).ok()?;
        stat.rsplit_once(')')?.1.starts_with(" T ").then_some(())
    });
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

/// ann cannot notify the lead of the end of its turn, and waits until it can.
#[test]
fn lead_lock_path_blocked() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    env.write_file("root/teams/survey/inboxes/team-lead.json.lock", "4711");
    create_task(&env, "true");
    let cause =
        assert_cause_for_inbox(&env, "inbox_lock_blocked", |sentence| sentence.replace("team-lead", "ann"));
    assert!(cause["sentence"].as_str().unwrap().contains("inbox of team-lead"), "{cause}");
    run_suggested_command(&env, &cause);
    std::fs::remove_file(env.path("root/teams/survey/inboxes/team-lead.json.lock")).unwrap();
    env.wait_until("the lead has the idle notification", || {
        env.payloads_to_lead("ann", "idle_notification").first().map(drop)
    });
    env.shut_down();
}
