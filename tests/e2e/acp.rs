//! Agents that speak the Agent Client Protocol, against a scripted one that is written over plain lines of JSON.

mod lives;
mod modes;
mod questions;
mod work;

use harness::House;
use serde_json::{Value, json};

pub(crate) const BACKENDS: [&str; 2] = ["tmux", "in-process"];

/// A house with a team and a profile `scripted`, whose program is begun with these words.
pub(crate) fn house(words: &[&str]) -> House {
    let mut house = House::empty();
    let heard = house.path("out/heard").display().to_string();
    house.variables.push(("ACP_HEARD".to_owned(), heard));
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    let profile = format!(
        "feed = \"acp\"\nprogram = \"{}\"\nargs = {}\ninstructions = \"none\"\n[modes]\ndefault = []\nplan = []\n\
         acceptEdits = []\n[session_modes]\nplan = \"read\"\nacceptEdits = \"code\"\ndefault = \"ask\"\n",
        harness::programs().join("acp-agent").display(),
        json!(words)
    );
    house.put("home/.config/teamd/agents/scripted.toml", profile);
    house
}

pub(crate) fn spawn(house: &House, more: &[&str]) {
    let ran = house.teamctl_with(&[&["spawn", "ann", "--agent", "scripted"], more].concat(), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", house.portrait());
}

pub(crate) fn send(house: &House, text: &str) {
    house.teamctl(["send", "ann", text, "--summary", "to do"]).ok();
}

fn log(house: &House) -> String {
    house.teamctl(["logs", "ann"]).stdout
}

pub(crate) fn shows(house: &House, text: &str) {
    house.until(&format!("ann shows {text}"), || log(house).contains(text).then_some(()));
}

/// The messages of this method that the agent has heard.
pub(crate) fn heard(house: &House, method: &str) -> Vec<Value> {
    let all = house.read("out/heard");
    let messages = all.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

/// The payloads of this type that ann sent to the lead.
pub(crate) fn said(house: &House, kind: &str) -> Vec<Value> {
    house.told("ann", kind)
}

/// The notification of the turn with that number, from 1.
pub(crate) fn turn(house: &House, number: usize) -> Value {
    house.until(&format!("turn {number} ends"), || said(house, "idle_notification").get(number - 1).cloned())
}

pub(crate) fn ends(house: House) {
    let ended = house.json(["shutdown", "ann"]);
    assert_eq!(ended["ended"][0]["how"], "approved", "{ended:#}");
    house.end();
}

/// Its question, once the lead has it.
pub(crate) fn question(house: &House, number: usize) -> Value {
    house.until("it asks", || said(house, "permission_request").get(number - 1).cloned())
}
