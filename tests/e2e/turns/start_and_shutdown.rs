//! From the start to the end, with a daemon or without.

use super::{FakeDaemon, agent_turns, create_task, env_without_daemon, send, worker_turns};
use serde_json::json;

#[test]
fn shutdown_waits_for_the_turn_and_ends_background_processes() {
    let env = env_without_daemon();
    env.create_gate("out/go");
    create_task(&env, "long", "setsid sleep 3600 & touch out/up; read line <out/go");
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    play.wait_until_task_runs();
    let text = json!({"type": "shutdown_request", "requestId": "shutdown-1@ann", "from": "team-lead",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    send(&play.env, &text.to_string());
    play.wake();
    play.receive_turn_report("it knows", |now| now["shutdown_requested"] == true && now["pid"].is_u64());
    play.env.open_gate("out/go");
    let (env, ended) = play.finish();
    assert_eq!(ended, json!({"exit": 0}));
    let lead = env.inbox("survey", "team-lead");
    let last = lead.last().unwrap()["text"].as_str().unwrap();
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
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    play.wait_until_task_runs();
    play.disconnect();
    play.env.open_gate("out/go");
    play.env.wait_until("it works on", || play.env.path("out/next").exists().then_some(()));
    let turn = loop {
        let turn = play.accept_reconnect();
        if turn["turn_number"] == 2 {
            break turn;
        }
        // It came back while the first one still ran.
        play.disconnect();
    };
    assert_eq!((&turn["activity"], &turn["summary"]), (&json!("active"), &json!("task 2: next")));
    play.send(&json!("adopted"));
    play.stop().shut_down();
}

#[test]
fn missing_program_ends_the_agent() {
    let mut play = FakeDaemon::start(
        env_without_daemon(),
        &agent_turns(&["no-such-program"], &[], &json!("no_session")),
        None,
    );
    let message =
        play.receive_until("it fails", |word| word["failed"]["message"].as_str().map(str::to_owned));
    assert!(message.contains("cannot start no-such-program"), "{message}");
    play.send(&json!("exit_recorded"));
    assert_eq!(play.exit_code(), Some(72));

    let env = env_without_daemon();
    let program = env.write_script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    let mut play = FakeDaemon::start(env, &agent_turns(&[&program], &[], &json!("no_session")), None);
    for (turns, text) in [(1, "one"), (2, "two")] {
        send(&play.env, text);
        play.wake();
        if turns == 1 {
            play.receive_idle(turns);
        }
    }
    let (env, ended) = play.finish();
    let why = ended["turn_not_started"].as_str().unwrap();
    assert!(why.contains("cannot start") && why.contains("prog"), "{why}");
    let inbox = env.inbox("survey", "ann");
    assert_eq!((&inbox[0]["read"], &inbox[1]["read"]), (&json!(true), &json!(false)));
    env.shut_down();
}
