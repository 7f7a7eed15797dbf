//! What a turn is given, and what is told of it.

use super::{FakeDaemon, agent_turns, create_task, env_without_daemon, send, shell_turns, worker_turns};
use serde_json::json;

#[test]
fn worker_reports_each_task_once() {
    let env = env_without_daemon();
    create_task(&env, "one", "echo out; echo err >&2; test -t 1 && echo on a terminal");
    create_task(&env, "two", "echo the reason >&2; exit 7");
    let mut play = FakeDaemon::start(env, &worker_turns(), None);
    let pid = play.receive_until("it starts", |word| word["started"]["pid"].as_u64());
    assert_eq!(pid, u64::from(play.pid), "the shim itself");
    let now = play.receive_turn_report("the first turn runs", |now| now["activity"] == "active");
    assert_eq!((&now["turn_number"], &now["summary"]), (&json!(1), &json!("task 1: one")));
    assert!(now["pid"].is_u64());
    assert_eq!(play.receive_idle(2)["idle_reason"], "failed");
    let shown = play.pane_output().replace("\u{1b}[0m", "");
    let expected = "── task 1: one\nout\nerr\non a terminal\nTask 1 is done: one\n── task 2: two\nthe reason\nTask 2 failed (exit 7: the reason): two\nidle\n";
    assert_eq!(shown, expected);
    let told = play.idle_notifications();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(
        (&told[0]["completedTaskId"], &told[0]["completedStatus"]),
        (&json!("1"), &json!("completed"))
    );
    assert_eq!(
        (&told[1]["idleReason"], &told[1]["failureReason"]),
        (&json!("failed"), &json!("exit 7: the reason"))
    );
    create_task(&play.env, "three", "touch out/three");
    play.wake();
    play.receive_idle(3);
    assert!(play.env.path("out/three").exists());
    play.stop().shut_down();
}

#[test]
fn prompt_messages_and_text_are_separate_turns() {
    let env = env_without_daemon();
    send(&env, "begin");
    let mut turns = shell_turns("cat >>out/seen; echo ' |' >>out/seen");
    turns["prompt"] = json!("begin");
    // All before it starts: whoever sends to one that has just gone idle races with its last look.
    send(&env, "a < b");
    env.teamctl(["-t", "survey", "send", "ann", "a person & words", "--as-user"]).expect_success();
    let mut play = FakeDaemon::start(env, &turns, None);
    play.receive_idle(3);
    let inbox = play.env.inbox("survey", "ann");
    assert!(inbox.iter().all(|message| message["read"] == true), "{inbox:#?}");
    let seen = "begin |\na person & words |\n<teammate-message teammate_id=\"team-lead\">\na &lt; b\n</teammate-message> |\n";
    assert_eq!(play.env.read("out/seen"), seen);
    play.stop().shut_down();
}

#[test]
fn session_id_of_the_first_turn_is_resumed() {
    let env = env_without_daemon();
    let first =
        ["sh", "-c", r#"echo "$0" >>out/seen; echo '{"type":"thread","thread_id":"t-9"}'"#, "{prompt}"];
    let next = ["sh", "-c", r#"echo "$1: $0" >>out/seen"#, "{prompt}", "{session}"];
    let mut turns = agent_turns(&first, &next, &json!({"output_key": {"key": "thread_id"}}));
    turns["prompt"] = json!("$(touch evil) `x`");
    let mut play = FakeDaemon::start(env, &turns, None);
    assert_eq!(play.receive_idle(1)["session_id"], "t-9");
    play.env.teamctl(["-t", "survey", "send", "ann", "go on", "--as-user"]).expect_success();
    play.wake();
    play.receive_idle(2);
    assert_eq!(play.env.read("out/seen"), "$(touch evil) `x`\nt-9: go on\n");
    play.stop().shut_down();
}

#[test]
fn long_text_is_passed_by_file() {
    let env = env_without_daemon();
    let script = "for word in $0; do case $word in /*) wc -c <$word >out/size;; esac; done";
    let mut turns = agent_turns(&["sh", "-c", script, "{prompt}"], &[], &json!("no_session"));
    turns["prompt"] = json!("x".repeat(200_000));
    let mut play = FakeDaemon::start(env, &turns, None);
    play.receive_idle(1);
    assert_eq!(play.env.read("out/size").trim(), "200000");
    let left = std::fs::read_dir(play.env.path("state/own")).unwrap().flatten();
    assert_eq!(left.filter(|file| file.file_name().to_string_lossy().starts_with("prompt")).count(), 0);
    play.stop().shut_down();
}

#[test]
fn long_text_on_stdin_does_not_block() {
    let env = env_without_daemon();
    let mut turns = shell_turns("touch out/up; read line <out/go; wc -c >out/size");
    env.create_gate("out/go");
    turns["prompt"] = json!("y".repeat(1_000_000));
    let mut play = FakeDaemon::start(env, &turns, None);
    play.wait_until_task_runs();
    play.wake();
    play.receive_turn_report("the loop goes on", |now| now["pid"].is_u64());
    play.env.open_gate("out/go");
    play.receive_idle(1);
    assert_eq!(play.env.read("out/size").trim(), "1000000");
    play.stop().shut_down();
}
