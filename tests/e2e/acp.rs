//! Agents that speak the Agent Client Protocol, against a scripted one that is written over plain lines of JSON.

mod modes;
mod permissions;
mod start_and_respawn;
mod turns;

use harness::TestEnv;
use serde_json::{Value, json};

pub(crate) const BACKENDS: [&str; 2] = ["tmux", "in-process"];

/// An environment with a team and a profile `scripted`, whose program is begun with these words.
pub(crate) fn env_with_acp_profile(words: &[&str]) -> TestEnv {
    let mut env = TestEnv::new();
    let heard = env.path("out/heard").display().to_string();
    env.variables.push(("ACP_HEARD".to_owned(), heard));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let profile = format!(
        "delivery = \"acp\"\nprogram = \"{}\"\nargs = {}\ninstructions = \"none\"\n[modes]\ndefault = []\nplan = []\n\
         acceptEdits = []\n[session_modes]\nplan = \"read\"\nacceptEdits = \"code\"\ndefault = \"ask\"\n",
        harness::programs().join("scripted-acp-agent").display(),
        json!(words)
    );
    env.write_file("home/.config/teamd/profiles/scripted.toml", profile);
    env
}

pub(crate) fn spawn(env: &TestEnv, more: &[&str]) {
    let ran = env.teamctl_with(&[&["spawn", "ann", "--profile", "scripted"], more].concat(), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", env.dump_state());
}

pub(crate) fn send(env: &TestEnv, text: &str) {
    env.teamctl(["send", "ann", text, "--summary", "to do"]).expect_success();
}

fn read_log(env: &TestEnv) -> String {
    env.teamctl(["logs", "ann"]).stdout
}

pub(crate) fn wait_for_output(env: &TestEnv, text: &str) {
    env.wait_until(&format!("ann shows {text}"), || read_log(env).contains(text).then_some(()));
}

/// The messages of this method that the agent has heard.
pub(crate) fn received_calls(env: &TestEnv, method: &str) -> Vec<Value> {
    let all = env.read("out/heard");
    let messages = all.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

/// The payloads of this type that ann sent to the lead.
pub(crate) fn payloads_to_lead(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.payloads_to_lead("ann", kind)
}

/// The notification of the turn with that number, from 1.
pub(crate) fn turn_notification(env: &TestEnv, number: usize) -> Value {
    env.wait_until(&format!("turn {number} ends"), || {
        payloads_to_lead(env, "idle_notification").get(number - 1).cloned()
    })
}

pub(crate) fn shut_down_member(env: TestEnv) {
    let ended = env.json(["shutdown", "ann"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended:#}");
    env.shut_down();
}

/// Its question, once the lead has it.
pub(crate) fn permission_request(env: &TestEnv, number: usize) -> Value {
    env.wait_until("it asks", || payloads_to_lead(env, "permission_request").get(number - 1).cloned())
}
