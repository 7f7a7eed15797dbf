//! Checks the turns that the shim runs. There is no daemon: the test sends the daemon's messages to
//! the shim and reads the shim's reports.

mod fake_daemon;
mod headless;
mod interrupts;
mod pane;
mod prompts_and_tasks;
mod start_and_shutdown;

use fake_daemon::FakeDaemon;
use harness::TestEnv;
use serde_json::{Value, json};

/// An environment without a daemon, with the files of the team `survey`: the lead, ann and bob.
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

/// The turns of a worker, as in the daemon's request to start the agent.
fn worker_turns() -> Value {
    json!({"program": {"worker": {}}})
}

/// Turns that run `first_argv` for the first turn and `later_argv` for later ones.
fn agent_turns(first_argv: &[&str], later_argv: &[&str], session: &Value) -> Value {
    json!({"program": {"per_turn": {"first_argv": first_argv, "later_argv": later_argv, "session": session}}})
}

/// Turns that each run the shell script, with the prompt on its stdin.
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
