//! Dialogs on the screens of agents: `status` shows them while they are on the screen, with every delivery.

use harness::TestEnv;
use serde_json::{Value, json};

/// What an agent that reads words on its terminal shows for each; before, an ordinary text that speaks of the dialog.
pub(crate) const ASKER: &str = r#"printf 'It asks: Do you trust it? 1. Yes, 2. No\n'
while read -r word; do
    case $word in
    ask) printf '\033[2J\033[H╭───╮\n│ Do you trust it? │\n│\n│ › 1. Yes │\n│   2. No │\n╰───╯\n' ;;
    go) printf '\033[2J\033[Hgoes on\n' ;;
    esac
done"#;

const DIALOG: &str = "dialogs = ['''Do you trust it?\n1. Yes''']\n";

pub(crate) fn write_profile(house: &TestEnv, name: &str, delivery: &str, script: &str) {
    std::fs::create_dir_all(house.path("home/.config/teamd/profiles")).unwrap();
    let path = house.write_script(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
    let text = format!("delivery = '{delivery}'\nprogram = '{}'\n{DIALOG}", path.display());
    drop(house.write_script(&format!("home/.config/teamd/profiles/{name}.toml"), &text));
}

pub(crate) fn type_answer(house: &TestEnv, name: &str, word: &str) {
    let pane = house.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, word, "Enter"]);
}

fn wait_for_flags(house: &TestEnv, name: &str, wanted: &Value) {
    house.wait_until(&format!("{name} has {wanted}"), || (house.flags(name) == *wanted).then_some(()));
}

pub(crate) fn wait_for_screen(house: &TestEnv, name: &str, text: &str) {
    let shown = || house.teamctl(["capture", name]).stdout.contains(text).then_some(());
    house.wait_until(&format!("{name} shows {text}"), shown);
}

#[test]
fn visible_dialog_is_shown_in_status() {
    let house = TestEnv::with_team();
    write_profile(&house, "asker", "pull", ASKER);
    house.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    wait_for_screen(&house, "ann", "It asks");
    assert_eq!(house.flags("ann"), json!([]), "a text that speaks of it is none");
    type_answer(&house, "ann", "ask");
    wait_for_flags(&house, "ann", &json!(["at_dialog"]));
    assert!(house.teamctl(["status"]).expect_success().contains("running!dialog"));
    assert!(house.teamctl(["status", "ann"]).expect_success().contains("waits at a dialog"));
    house.teamctl(["hide", "ann"]).expect_success();
    assert_eq!(house.flags("ann"), json!(["at_dialog"]));
    type_answer(&house, "ann", "go");
    wait_for_flags(&house, "ann", &json!([]));
    house.shut_down();
}

#[test]
fn dialog_of_a_turn_program_is_shown_in_status() {
    let house = TestEnv::with_team();
    let gate = house.create_gate("gate");
    let script = format!(
        "printf 'Do you trust it?\\n1. Yes\\n'; read -r _ <{gate}; printf '\\033[2J\\033[Hgoes on\\n'"
    );
    write_profile(&house, "turner", "turn", &script);
    house.teamctl(["spawn", "ann", "--profile", "turner", "--prompt", "begin"]).expect_success();
    wait_for_flags(&house, "ann", &json!(["at_dialog"]));
    house.open_gate("gate");
    wait_for_flags(&house, "ann", &json!([]));
    house.shut_down();
}

#[test]
fn member_without_pane_has_no_dialog_flag() {
    let house = TestEnv::with_team();
    write_profile(&house, "asker", "pull", "printf 'Do you trust it?\n1. Yes\n'; exec sleep 1000");
    house.teamctl(["spawn", "ann", "--profile", "asker", "--backend", "in-process"]).expect_success();
    house.wait_until("it is written", || {
        house.teamctl(["logs", "ann"]).stdout.contains("1. Yes").then_some(())
    });
    assert_eq!(house.flags("ann"), json!([]));
    house.shut_down();
}

/// A tmux server that does not run; it goes on when this is dropped, so that a failed test can look at it.
struct PausedTmuxServer(u32);

impl PausedTmuxServer {
    fn new(house: &TestEnv) -> PausedTmuxServer {
        let pid = house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
        signal(pid, rustix::process::Signal::STOP);
        PausedTmuxServer(pid)
    }
}

impl Drop for PausedTmuxServer {
    fn drop(&mut self) {
        signal(self.0, rustix::process::Signal::CONT);
    }
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn unresponsive_tmux_makes_dialogs_unknown() {
    let house = TestEnv::with_team();
    write_profile(&house, "asker", "pull", ASKER);
    house.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    wait_for_screen(&house, "ann", "It asks");
    let stopped = PausedTmuxServer::new(&house);
    let status = house.teamctl(["status"]);
    assert!(status.code == 0 && status.stdout.contains("running?dialog"), "{status:?}");
    assert_eq!(house.flags("ann"), json!(["dialog_unknown"]));
    drop(stopped);
    type_answer(&house, "ann", "ask");
    wait_for_flags(&house, "ann", &json!(["at_dialog"]));
    house.shut_down();
}
