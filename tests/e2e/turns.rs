//! Agents whose turns the shim runs. The test itself is the daemon: it sends what the real daemon sends, and records what
//! the shim reports.

mod fake_daemon;
mod headless;
mod interrupts;
mod pane;
mod prompts_and_tasks;
mod start_and_shutdown;

use fake_daemon::FakeDaemon;
use harness::TestEnv;
use serde_json::{Value, json};

/// The files of a team that no daemon has made.
fn env_without_daemon() -> TestEnv {
    let env = TestEnv::new();
    let member = |name: &str| {
        json!({"agentId": format!("{name}@survey"), "name": name, "agentType": "x", "model": "", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": []})
    };
    let members: Vec<Value> = ["team-lead", "ann", "bob"].map(member).to_vec();
    let config = json!({"name": "survey", "createdAt": 1, "leadAgentId": "team-lead@survey",
        "leadSessionId": "x", "members": members});
    std::fs::create_dir_all(env.path("root/teams/survey/inboxes")).unwrap();
    env.write_file("root/teams/survey/config.json", config.to_string());
    env
}

fn worker_turns() -> Value {
    json!({"program": {"worker": {}}})
}

fn agent_turns(first: &[&str], next: &[&str], session: &Value) -> Value {
    json!({"program": {"per_turn": {"first_argv": first, "later_argv": next, "session": session}}})
}

fn shell_turns(script: &str) -> Value {
    agent_turns(&["sh", "-c", script], &[], &json!("no_session"))
}

fn create_task(env: &TestEnv, subject: &str, command: &str) {
    let metadata = json!({"command": command}).to_string();
    env.teamctl(["-t", "survey", "task", "create", subject, "--metadata", &metadata]).expect_success();
}

fn send(env: &TestEnv, text: &str) {
    env.teamctl(["-t", "survey", "send", "ann", text]).expect_success();
}
