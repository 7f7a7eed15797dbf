//! Dialogs on the screens of agents: shown by `status` while they are there, whatever feeds the agent.

use harness::House;
use serde_json::{Value, json};

/// What an agent that reads words on its terminal shows for each; before, an ordinary text that speaks of the dialog.
pub(crate) const ASKER: &str = r#"printf 'It asks: Do you trust it? 1. Yes, 2. No\n'
while read -r word; do
    case $word in
    ask) printf '\033[2J\033[H╭───╮\n│ Do you trust it? │\n│\n│ › 1. Yes │\n│   2. No │\n╰───╯\n' ;;
    go) printf '\033[2J\033[Hgoes on\n' ;;
    esac
done"#;

const DIALOG: &str = "dialog = ['''Do you trust it?\n1. Yes''']\n";

pub(crate) fn profile(house: &House, name: &str, feed: &str, script: &str) {
    std::fs::create_dir_all(house.path("home/.config/teamd/agents")).unwrap();
    let path = house.script(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
    let text = format!("feed = '{feed}'\nprogram = '{}'\n{DIALOG}", path.display());
    drop(house.script(&format!("home/.config/teamd/agents/{name}.toml"), &text));
}

pub(crate) fn says(house: &House, name: &str, word: &str) {
    let pane = house.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, word, "Enter"]);
}

fn until_flags(house: &House, name: &str, wanted: &Value) {
    house.until(&format!("{name} has {wanted}"), || (house.flags(name) == *wanted).then_some(()));
}

pub(crate) fn until_shown(house: &House, name: &str, text: &str) {
    let shown = || house.teamctl(["capture", name]).stdout.contains(text).then_some(());
    house.until(&format!("{name} shows {text}"), shown);
}

#[test]
fn a_dialog_is_told_while_it_is_on_the_screen_in_sight_or_not() {
    let house = House::with_team();
    profile(&house, "asker", "pull", ASKER);
    house.teamctl(["spawn", "ann", "--agent", "asker"]).ok();
    until_shown(&house, "ann", "It asks");
    assert_eq!(house.flags("ann"), json!([]), "a text that speaks of it is none");
    says(&house, "ann", "ask");
    until_flags(&house, "ann", &json!(["at_dialog"]));
    assert!(house.teamctl(["status"]).ok().contains("running!dialog"));
    assert!(house.teamctl(["status", "ann"]).ok().contains("waits at a dialog"));
    house.teamctl(["hide", "ann"]).ok();
    assert_eq!(house.flags("ann"), json!(["at_dialog"]));
    says(&house, "ann", "go");
    until_flags(&house, "ann", &json!([]));
    house.end();
}

#[test]
fn so_it_is_for_one_that_is_run_a_turn_at_a_time() {
    let house = House::with_team();
    let gate = house.gate("gate");
    let script = format!(
        "printf 'Do you trust it?\\n1. Yes\\n'; read -r _ <{gate}; printf '\\033[2J\\033[Hgoes on\\n'"
    );
    profile(&house, "turner", "turn", &script);
    house.teamctl(["spawn", "ann", "--agent", "turner", "--prompt", "begin"]).ok();
    until_flags(&house, "ann", &json!(["at_dialog"]));
    house.open_gate("gate");
    until_flags(&house, "ann", &json!([]));
    house.end();
}

#[test]
fn who_has_no_pane_has_no_screen() {
    let house = House::with_team();
    profile(&house, "asker", "pull", "printf 'Do you trust it?\n1. Yes\n'; exec sleep 1000");
    house.teamctl(["spawn", "ann", "--agent", "asker", "--backend", "in-process"]).ok();
    house.until("it is written", || house.teamctl(["logs", "ann"]).stdout.contains("1. Yes").then_some(()));
    assert_eq!(house.flags("ann"), json!([]));
    house.end();
}

/// A tmux server that does not run; it goes on when this is dropped, so that a failed test can look at it.
struct Stopped(u32);

impl Stopped {
    fn new(house: &House) -> Stopped {
        let pid = house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
        signal(pid, rustix::process::Signal::STOP);
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0, rustix::process::Signal::CONT);
    }
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_tmux_that_hangs_is_no_error_and_what_it_would_show_is_not_known() {
    let house = House::with_team();
    profile(&house, "asker", "pull", ASKER);
    house.teamctl(["spawn", "ann", "--agent", "asker"]).ok();
    until_shown(&house, "ann", "It asks");
    let stopped = Stopped::new(&house);
    let status = house.teamctl(["status"]);
    assert!(status.code == 0 && status.stdout.contains("running?dialog"), "{status:?}");
    assert_eq!(house.flags("ann"), json!(["dialog_unknown"]));
    drop(stopped);
    says(&house, "ann", "ask");
    until_flags(&house, "ann", &json!(["at_dialog"]));
    house.end();
}
