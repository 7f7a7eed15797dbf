//! Checks that an interrupt ends the current turn and its processes, but not the agent.

use super::{FakeDaemon, create_task, env_without_daemon, worker_turns};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn interrupt_ends_the_turn_not_the_agent() {
    let env = env_without_daemon();
    create_task(&env, "stubborn", "trap '' INT TERM; touch out/up; while :; do sleep 1; done");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    daemon.wait_until_task_runs();
    daemon.send(&json!("interrupt"));
    assert_eq!(daemon.receive_idle(1)["idle_reason"], "interrupted");
    assert!(
        daemon.receive_until("the shim replies", |message| message["interrupted"]["was_in_turn"].as_bool())
    );
    let notifications = daemon.idle_notifications();
    assert_eq!(
        (&notifications[0]["idleReason"], &notifications[0]["completedStatus"]),
        (&json!("interrupted"), &json!("failed"))
    );
    daemon.send(&json!("interrupt"));
    assert!(
        !daemon.receive_until("the shim replies", |message| message["interrupted"]["was_in_turn"].as_bool())
    );
    create_task(&daemon.env, "next", "touch out/next");
    daemon.wake();
    daemon.receive_idle(2);
    assert!(daemon.env.path("out/next").exists());
    daemon.stop().shut_down();
}

#[test]
fn interrupted_turn_leaves_no_processes() {
    let env = env_without_daemon();
    let ignoring_process = "(trap '' INT TERM; touch out/deaf; while :; do sleep 1; done) &";
    create_task(&env, "serve", &format!("sleep 777 & {ignoring_process} touch out/up; exec sleep 3600"));
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    let exists = |name: &str| daemon.env.path(name).exists();
    daemon.env.wait_until("both processes of the task are running", || {
        (exists("out/up") && exists("out/deaf")).then_some(())
    });
    daemon.send(&json!("interrupt"));
    assert_eq!(daemon.receive_idle(1)["idle_reason"], "interrupted");
    daemon.assert_no_processes();
    daemon.stop().shut_down();
}

#[test]
fn late_interrupt_does_not_hit_the_next_turn() {
    let env = env_without_daemon();
    let file = env.root().join("tasks/survey/1.json");
    create_task(&env, "one", &format!("cp {0} out/whole; echo '{{' >{0}", file.display()));
    create_task(&env, "two", "sleep 0.3; touch out/next");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    let first_pid =
        daemon.receive_turn_report("the first turn runs", |status| status["pid"].is_u64())["pid"].clone();
    // Afterwards the shim reads the damaged file of the task and tries that again for some time.
    daemon.env.wait_until("the process of the first turn has been reaped", || {
        (!PathBuf::from(format!("/proc/{first_pid}")).exists()).then_some(())
    });
    Command::new("kill").args(["-INT", &daemon.pid.to_string()]).status().unwrap();
    daemon.env.write_file("root/tasks/survey/1.json", daemon.env.read("out/whole"));
    assert_eq!(daemon.receive_idle(2)["idle_reason"], "available");
    assert!(daemon.env.path("out/next").exists());
    daemon.stop().shut_down();
}

#[test]
fn ctrl_c_in_the_pane_interrupts() {
    let env = env_without_daemon();
    create_task(&env, "long", "touch out/up; exec sleep 3600");
    let mut daemon = FakeDaemon::start_in_pane(env, &worker_turns());
    daemon.wait_until_task_runs();
    daemon.env.tmux(["send-keys", "-t", "ann", "C-c"]);
    assert_eq!(daemon.receive_idle(1)["idle_reason"], "interrupted");
    daemon.stop().shut_down();
}
