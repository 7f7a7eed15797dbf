//! A turn that is interrupted ends, and the agent does not.

use super::{FakeDaemon, create_task, env_without_daemon, worker_turns};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn interrupt_ends_the_turn_not_the_agent() {
    let env = env_without_daemon();
    create_task(&env, "stubborn", "trap '' INT TERM; touch out/up; while :; do sleep 1; done");
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    play.wait_until_task_runs();
    play.send(&json!("interrupt"));
    assert_eq!(play.receive_idle(1)["idle_reason"], "interrupted");
    assert!(play.receive_until("it answers", |word| word["interrupted"]["was_in_turn"].as_bool()));
    let told = play.idle_notifications();
    assert_eq!(
        (&told[0]["idleReason"], &told[0]["completedStatus"]),
        (&json!("interrupted"), &json!("failed"))
    );
    play.send(&json!("interrupt"));
    assert!(!play.receive_until("it answers", |word| word["interrupted"]["was_in_turn"].as_bool()));
    create_task(&play.env, "next", "touch out/next");
    play.wake();
    play.receive_idle(2);
    assert!(play.env.path("out/next").exists());
    play.stop().shut_down();
}

#[test]
fn interrupted_turn_leaves_no_processes() {
    let env = env_without_daemon();
    let stubborn = "(trap '' INT TERM; touch out/deaf; while :; do sleep 1; done) &";
    create_task(&env, "serve", &format!("sleep 777 & {stubborn} touch out/up; exec sleep 3600"));
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    let up = |name: &str| play.env.path(name).exists();
    play.env.wait_until("it is up", || (up("out/up") && up("out/deaf")).then_some(()));
    play.send(&json!("interrupt"));
    assert_eq!(play.receive_idle(1)["idle_reason"], "interrupted");
    play.assert_no_processes();
    play.stop().shut_down();
}

#[test]
fn late_interrupt_does_not_hit_the_next_turn() {
    let env = env_without_daemon();
    let file = env.root().join("tasks/survey/1.json");
    create_task(&env, "one", &format!("cp {0} out/whole; echo '{{' >{0}", file.display()));
    create_task(&env, "two", "sleep 0.3; touch out/next");
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    let first = play.receive_turn_report("it works", |now| now["pid"].is_u64())["pid"].clone();
    // Reaped: now it reads the damaged file, and is patient with it.
    play.env.wait_until("it ended", || (!PathBuf::from(format!("/proc/{first}")).exists()).then_some(()));
    Command::new("kill").args(["-INT", &play.pid.to_string()]).status().unwrap();
    play.env.write_file("root/tasks/survey/1.json", play.env.read("out/whole"));
    assert_eq!(play.receive_idle(2)["idle_reason"], "available");
    assert!(play.env.path("out/next").exists());
    play.stop().shut_down();
}

#[test]
fn ctrl_c_in_the_pane_interrupts() {
    let env = env_without_daemon();
    create_task(&env, "long", "touch out/up; exec sleep 3600");
    let mut play = FakeDaemon::start_in_pane(env, &worker_turns());
    play.wait_until_task_runs();
    play.env.tmux(["send-keys", "-t", "ann", "C-c"]);
    assert_eq!(play.receive_idle(1)["idle_reason"], "interrupted");
    play.stop().shut_down();
}
