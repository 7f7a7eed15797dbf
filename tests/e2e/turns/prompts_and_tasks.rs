//! Checks what a turn gets (tasks, prompts, messages, sessions) and what the agent reports of it.

use super::{FakeDaemon, agent_turns, create_task, env_without_daemon, send, shell_turns, worker_turns};
use serde_json::json;

#[test]
fn worker_reports_each_task_once() {
    let env = env_without_daemon();
    create_task(&env, "one", "echo out; echo err >&2; test -t 1 && echo on a terminal");
    create_task(&env, "two", "echo the reason >&2; exit 7");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    let pid = daemon.receive_until("the agent has started", |message| message["started"]["pid"].as_u64());
    assert_eq!(pid, u64::from(daemon.pid), "the agent's pid is the shim's");
    let status = daemon.receive_turn_report("the first turn runs", |status| status["activity"] == "active");
    assert_eq!((&status["turn_number"], &status["summary"]), (&json!(1), &json!("task 1: one")));
    assert!(status["pid"].is_u64());
    assert_eq!(daemon.receive_idle(2)["idle_reason"], "failed");
    let output = daemon.pane_output().replace("\u{1b}[0m", "");
    let expected = "── task 1: one\nout\nerr\non a terminal\nTask 1 is done: one\n── task 2: two\nthe reason\nTask 2 failed (exit 7: the reason): two\nidle\n";
    assert_eq!(output, expected);
    let notifications = daemon.idle_notifications();
    assert_eq!(notifications.len(), 2, "{notifications:#?}");
    assert_eq!(
        (&notifications[0]["completedTaskId"], &notifications[0]["completedStatus"]),
        (&json!("1"), &json!("completed"))
    );
    assert_eq!(
        (&notifications[1]["idleReason"], &notifications[1]["failureReason"]),
        (&json!("failed"), &json!("exit 7: the reason"))
    );
    create_task(&daemon.env, "three", "touch out/three");
    daemon.wake();
    daemon.receive_idle(3);
    assert!(daemon.env.path("out/three").exists());
    daemon.stop().shut_down();
}

#[test]
fn prompt_messages_and_text_are_separate_turns() {
    let env = env_without_daemon();
    send(&env, "begin");
    let mut turns = shell_turns("cat >>out/seen; echo ' |' >>out/seen");
    turns["prompt"] = json!("begin");
    // All messages are sent before the shim starts. A message to an agent that has just become idle
    // would race with the agent's last scan.
    send(&env, "a < b");
    env.teamctl(["-t", "survey", "send", "ann", "a person & words", "--as-user"]).expect_success();
    let mut daemon = FakeDaemon::start(env, &turns, None);
    daemon.receive_idle(3);
    let inbox = daemon.env.inbox("survey", "ann");
    assert!(inbox.iter().all(|message| message["read"] == true), "{inbox:#?}");
    let expected = "begin |\na person & words |\n<teammate-message teammate_id=\"team-lead\">\na &lt; b\n</teammate-message> |\n";
    assert_eq!(daemon.env.read("out/seen"), expected);
    daemon.stop().shut_down();
}

#[test]
fn session_id_of_the_first_turn_is_resumed() {
    let env = env_without_daemon();
    let first_argv =
        ["sh", "-c", r#"echo "$0" >>out/seen; echo '{"type":"thread","thread_id":"t-9"}'"#, "{prompt}"];
    let later_argv = ["sh", "-c", r#"echo "$1: $0" >>out/seen"#, "{prompt}", "{session}"];
    let mut turns = agent_turns(&first_argv, &later_argv, &json!({"output_key": {"key": "thread_id"}}));
    turns["prompt"] = json!("$(touch evil) `x`");
    let mut daemon = FakeDaemon::start(env, &turns, None);
    assert_eq!(daemon.receive_idle(1)["session_id"], "t-9");
    daemon.env.teamctl(["-t", "survey", "send", "ann", "go on", "--as-user"]).expect_success();
    daemon.wake();
    daemon.receive_idle(2);
    assert_eq!(daemon.env.read("out/seen"), "$(touch evil) `x`\nt-9: go on\n");
    daemon.stop().shut_down();
}

#[test]
fn long_text_is_passed_by_file() {
    let env = env_without_daemon();
    let script = "for word in $0; do case $word in /*) wc -c <$word >out/size;; esac; done";
    let mut turns = agent_turns(&["sh", "-c", script, "{prompt}"], &[], &json!("no_session"));
    turns["prompt"] = json!("x".repeat(200_000));
    let mut daemon = FakeDaemon::start(env, &turns, None);
    daemon.receive_idle(1);
    assert_eq!(daemon.env.read("out/size").trim(), "200000");
    let files = std::fs::read_dir(daemon.env.path("state/own")).unwrap().flatten();
    assert_eq!(files.filter(|file| file.file_name().to_string_lossy().starts_with("prompt")).count(), 0);
    daemon.stop().shut_down();
}

#[test]
fn long_text_on_stdin_does_not_block() {
    let env = env_without_daemon();
    let mut turns = shell_turns("touch out/up; read line <out/go; wc -c >out/size");
    env.create_gate("out/go");
    turns["prompt"] = json!("y".repeat(1_000_000));
    let mut daemon = FakeDaemon::start(env, &turns, None);
    daemon.wait_until_task_runs();
    daemon.wake();
    daemon.receive_turn_report("the event loop runs during the turn", |status| status["pid"].is_u64());
    daemon.env.open_gate("out/go");
    daemon.receive_idle(1);
    assert_eq!(daemon.env.read("out/size").trim(), "1000000");
    daemon.stop().shut_down();
}
