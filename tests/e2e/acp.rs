//! Agents that speak the Agent Client Protocol (ACP). The agent is `scripted-acp-agent`, which uses
//! plain lines of JSON and no ACP library.

mod modes;
mod permissions;
mod start_and_respawn;
mod turns;

use harness::TestEnv;
use serde_json::{Value, json};

pub(crate) const BACKENDS: [&str; 2] = ["tmux", "in-process"];

/// An environment with the team `survey` and the profile `scripted`, which starts the scripted
/// agent with `args`. The agent writes the messages that it receives to `out/heard`.
pub(crate) fn env_with_acp_profile(args: &[&str]) -> TestEnv {
    let mut env = TestEnv::new();
    let log_path = env.path("out/heard").display().to_string();
    env.variables.push(("ACP_HEARD".to_owned(), log_path));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let profile = format!(
        "delivery = \"acp\"\nprogram = \"{}\"\nargs = {}\ninstructions = \"none\"\n[modes]\ndefault = []\nplan = []\n\
         acceptEdits = []\n[session_modes]\nplan = \"read\"\nacceptEdits = \"code\"\ndefault = \"ask\"\n",
        harness::programs().join("scripted-acp-agent").display(),
        json!(args)
    );
    env.write_file("home/.config/teamd/profiles/scripted.toml", profile);
    env
}

pub(crate) fn spawn(env: &TestEnv, options: &[&str]) {
    let output = env.teamctl_with(&[&["spawn", "ann", "--profile", "scripted"], options].concat(), &[]);
    assert_eq!(output.code, 0, "{output:#?}\n{}", env.dump_state());
}

pub(crate) fn send(env: &TestEnv, text: &str) {
    env.teamctl(["send", "ann", text, "--summary", "to do"]).expect_success();
}

fn read_log(env: &TestEnv) -> String {
    env.teamctl(["logs", "ann"]).stdout
}

pub(crate) fn wait_for_output(env: &TestEnv, text: &str) {
    env.wait_until(&format!("the log of ann contains {text}"), || read_log(env).contains(text).then_some(()));
}

/// The calls of `method` that the agent has received.
pub(crate) fn received_calls(env: &TestEnv, method: &str) -> Vec<Value> {
    let log = env.read("out/heard");
    let messages = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

/// The payloads of type `kind` that ann sent to the lead.
pub(crate) fn payloads_to_lead(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.payloads_to_lead("ann", kind)
}

/// Waits for the notification that ann sends when turn `number` ends. The first turn is 1.
pub(crate) fn turn_notification(env: &TestEnv, number: usize) -> Value {
    env.wait_until(&format!("turn {number} ends"), || {
        payloads_to_lead(env, "idle_notification").get(number - 1).cloned()
    })
}

pub(crate) fn shut_down_member(env: TestEnv) {
    let reply = env.json(["shutdown", "ann"]);
    assert_eq!(reply["exits"][0]["description"], "approved", "{reply:#}");
    env.shut_down();
}

/// Waits for permission request `number` of ann, from 1, in the inbox of the lead.
pub(crate) fn permission_request(env: &TestEnv, number: usize) -> Value {
    env.wait_until("the lead has the permission request", || {
        payloads_to_lead(env, "permission_request").get(number - 1).cloned()
    })
}
