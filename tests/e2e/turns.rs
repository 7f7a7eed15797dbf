//! Agents that join runs a turn at a time, with a daemon of the test's own: it says what the real one says, and writes
//! down what it hears.

mod headless;
mod interrupts;
mod life;
mod pane;
mod play;
mod work;

use harness::House;
use play::Play;
use serde_json::{Value, json};

/// The files of a team that no daemon has made.
fn house() -> House {
    let house = House::empty();
    let member = |name: &str| {
        json!({"agentId": format!("{name}@survey"), "name": name, "agentType": "x", "model": "", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": []})
    };
    let members: Vec<Value> = ["team-lead", "ann", "bob"].map(member).to_vec();
    let config = json!({"name": "survey", "createdAt": 1, "leadAgentId": "team-lead@survey",
        "leadSessionId": "x", "members": members});
    std::fs::create_dir_all(house.path("root/teams/survey/inboxes")).unwrap();
    house.put("root/teams/survey/config.json", config.to_string());
    house
}

fn worker() -> Value {
    json!({"program": {"worker": {}}})
}

fn agent(first: &[&str], next: &[&str], session: &Value) -> Value {
    json!({"program": {"agent": {"first": first, "next": next, "session": session}}})
}

fn shell(script: &str) -> Value {
    agent(&["sh", "-c", script], &[], &json!("none"))
}

fn task(house: &House, subject: &str, command: &str) {
    let metadata = json!({"command": command}).to_string();
    house.teamctl(["-t", "survey", "task", "create", subject, "--metadata", &metadata]).ok();
}

fn send(house: &House, text: &str) {
    house.teamctl(["-t", "survey", "send", "ann", text]).ok();
}
