//! Checks agents whose turns the shim runs: shutdown requests, work without a daemon, and programs
//! that cannot be started.

use super::{FakeDaemon, agent_turns, create_task, env_without_daemon, send, worker_turns};
use serde_json::json;

#[test]
fn shutdown_waits_for_the_turn_and_ends_background_processes() {
    let env = env_without_daemon();
    env.create_gate("out/go");
    create_task(&env, "long", "setsid sleep 3600 & touch out/up; read line <out/go");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    daemon.wait_until_task_runs();
    let text = json!({"type": "shutdown_request", "requestId": "shutdown-1@ann", "from": "team-lead",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    send(&daemon.env, &text.to_string());
    daemon.wake();
    daemon.receive_turn_report("the agent has the shutdown request", |status| {
        status["shutdown_requested"] == true && status["pid"].is_u64()
    });
    daemon.env.open_gate("out/go");
    let (env, exit) = daemon.finish();
    assert_eq!(exit, json!({"exit": 0}));
    let inbox = env.inbox("survey", "team-lead");
    let last = inbox.last().unwrap()["text"].as_str().unwrap();
    assert!(last.contains("shutdown_approved") && last.contains("shutdown-1@ann"), "{last}");
    assert_eq!(env.json(["-t", "survey", "task", "get", "1"])["task"]["status"], "completed");
    env.shut_down();
}

#[test]
fn agent_works_without_a_daemon_and_reports_later() {
    let env = env_without_daemon();
    env.create_gate("out/go");
    create_task(&env, "long", "touch out/up; read line <out/go");
    create_task(&env, "next", "touch out/next; exec sleep 3600");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    daemon.wait_until_task_runs();
    daemon.disconnect();
    daemon.env.open_gate("out/go");
    daemon
        .env
        .wait_until("the second turn has started", || daemon.env.path("out/next").exists().then_some(()));
    let turn = loop {
        let turn = daemon.accept_reconnect();
        if turn["turn_number"] == 2 {
            break turn;
        }
        // The shim reconnected during the first turn.
        daemon.disconnect();
    };
    assert_eq!((&turn["activity"], &turn["summary"]), (&json!("active"), &json!("task 2: next")));
    daemon.send(&json!("adopted"));
    daemon.stop().shut_down();
}

#[test]
fn missing_program_ends_the_agent() {
    let mut daemon = FakeDaemon::start(
        env_without_daemon(),
        &agent_turns(&["no-such-program"], &[], &json!("no_session")),
        None,
    );
    let message = daemon
        .receive_until("the start fails", |message| message["failed"]["message"].as_str().map(str::to_owned));
    assert!(message.contains("cannot start no-such-program"), "{message}");
    daemon.send(&json!("exit_recorded"));
    assert_eq!(daemon.exit_code(), Some(72));

    let env = env_without_daemon();
    let program = env.write_script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    let mut daemon = FakeDaemon::start(env, &agent_turns(&[&program], &[], &json!("no_session")), None);
    for (turn_number, text) in [(1, "one"), (2, "two")] {
        send(&daemon.env, text);
        daemon.wake();
        if turn_number == 1 {
            daemon.receive_idle(turn_number);
        }
    }
    let (env, exit) = daemon.finish();
    let reason = exit["turn_not_started"].as_str().unwrap();
    assert!(reason.contains("cannot start") && reason.contains("prog"), "{reason}");
    let inbox = env.inbox("survey", "ann");
    assert_eq!((&inbox[0]["read"], &inbox[1]["read"]), (&json!(true), &json!(false)));
    env.shut_down();
}
