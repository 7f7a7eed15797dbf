//! Dialogs on the screens of agents: `status` shows a dialog while it is on the screen, whatever
//! the delivery of the agent is.

use harness::TestEnv;
use serde_json::{Value, json};

/// Script of an agent that reads words from its terminal: `ask` shows the dialog and `go` removes
/// it. At its start it prints a normal text that contains the words of the dialog.
pub(crate) const ASKER: &str = r#"printf 'It asks: Do you trust it? 1. Yes, 2. No\n'
while read -r word; do
    case $word in
    ask) printf '\033[2J\033[H╭───╮\n│ Do you trust it? │\n│\n│ › 1. Yes │\n│   2. No │\n╰───╯\n' ;;
    go) printf '\033[2J\033[Hgoes on\n' ;;
    esac
done"#;

const DIALOG: &str = "dialogs = ['''Do you trust it?\n1. Yes''']\n";

pub(crate) fn write_profile(env: &TestEnv, name: &str, delivery: &str, script: &str) {
    std::fs::create_dir_all(env.path("home/.config/teamd/profiles")).unwrap();
    let path = env.write_script(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
    let text = format!("delivery = '{delivery}'\nprogram = '{}'\n{DIALOG}", path.display());
    drop(env.write_script(&format!("home/.config/teamd/profiles/{name}.toml"), &text));
}

pub(crate) fn type_answer(env: &TestEnv, name: &str, word: &str) {
    let pane = env.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
    env.tmux(["send-keys", "-t", &pane, word, "Enter"]);
}

fn wait_for_flags(env: &TestEnv, name: &str, expected: &Value) {
    env.wait_until(&format!("the flags of {name} are {expected}"), || {
        (env.flags(name) == *expected).then_some(())
    });
}

pub(crate) fn wait_for_screen(env: &TestEnv, name: &str, text: &str) {
    let is_shown = || env.teamctl(["capture", name]).stdout.contains(text).then_some(());
    env.wait_until(&format!("the screen of {name} shows {text}"), is_shown);
}

#[test]
fn prompt_of_a_program_that_an_agent_starts_is_shown() {
    let env = TestEnv::with_team();
    let script = r"printf 'protocol=https\nhost=example.org\n\n' | env -u GIT_ASKPASS -u SSH_ASKPASS git -c credential.helper= credential fill";
    write_profile(&env, "pusher", "pull", script);
    env.teamctl(["spawn", "ann", "--profile", "pusher"]).expect_success();
    wait_for_screen(&env, "ann", "Username for");
    wait_for_flags(&env, "ann", &json!(["at_dialog"]));
    assert_eq!(env.member("ann").unwrap()["dialog"], "Username for 'https://example.org':");
    let why = env.json(["why", "ann"]);
    assert_eq!(why["causes"][0]["cause"], "at_dialog", "{why}");
    // A plain command has no profile that names dialogs.
    env.teamctl(["spawn", "bob", "--", "sh", "-c", script]).expect_success();
    wait_for_screen(&env, "bob", "Username for");
    let status = env.teamctl(["status"]).expect_success();
    assert_eq!(status.matches("running!dialog").count(), 2, "{status}");
    assert!(env.teamctl(["why", "bob"]).stdout.contains("Username for 'https://example.org':"));
    env.shut_down();
}

#[test]
fn visible_dialog_is_shown_in_status() {
    let env = TestEnv::with_team();
    write_profile(&env, "asker", "pull", ASKER);
    env.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    wait_for_screen(&env, "ann", "It asks");
    assert_eq!(env.flags("ann"), json!([]), "a text with the words of the dialog is no dialog");
    type_answer(&env, "ann", "ask");
    wait_for_flags(&env, "ann", &json!(["at_dialog"]));
    assert!(env.teamctl(["status"]).expect_success().contains("running!dialog"));
    assert!(env.teamctl(["status", "ann"]).expect_success().contains("waits at a dialog"));
    // Once a dialog is known, everything shows it.
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let label = || env.tmux(["display-message", "-p", "-t", &pane, "#{@teamd_state}"]);
    env.wait_until("the border shows the dialog", || (label() == "at-dialog").then_some(()));
    assert!(env.teamctl(["status", "--format", "tmux"]).expect_success().contains("!1"));
    env.wait_until("the dialog is logged", || {
        env.teamctl(["events"]).expect_success().contains("dialog").then_some(())
    });
    env.teamctl(["hide", "ann"]).expect_success();
    assert_eq!(env.flags("ann"), json!(["at_dialog"]));
    type_answer(&env, "ann", "go");
    wait_for_flags(&env, "ann", &json!([]));
    env.shut_down();
}

#[test]
fn dialog_of_a_turn_program_is_shown_in_status() {
    let env = TestEnv::with_team();
    let gate = env.create_gate("gate");
    let script = format!(
        "printf 'Do you trust it?\\n1. Yes\\n'; read -r _ <{gate}; printf '\\033[2J\\033[Hgoes on\\n'"
    );
    write_profile(&env, "turner", "turn", &script);
    env.teamctl(["spawn", "ann", "--profile", "turner", "--prompt", "begin"]).expect_success();
    wait_for_flags(&env, "ann", &json!(["at_dialog"]));
    env.open_gate("gate");
    wait_for_flags(&env, "ann", &json!([]));
    env.shut_down();
}

#[test]
fn member_without_pane_has_no_dialog_flag() {
    let env = TestEnv::with_team();
    write_profile(&env, "asker", "pull", "printf 'Do you trust it?\n1. Yes\n'; exec sleep 1000");
    env.teamctl(["spawn", "ann", "--profile", "asker", "--backend", "in-process"]).expect_success();
    env.wait_until("the log contains the dialog", || {
        env.teamctl(["logs", "ann"]).stdout.contains("1. Yes").then_some(())
    });
    assert_eq!(env.flags("ann"), json!([]));
    env.shut_down();
}

/// A stopped tmux server. It is continued on drop, so that the output of a failed test can show its
/// panes.
pub(crate) struct PausedTmuxServer(u32);

impl PausedTmuxServer {
    pub(crate) fn new(env: &TestEnv) -> PausedTmuxServer {
        let pid = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
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
    let env = TestEnv::with_team();
    write_profile(&env, "asker", "pull", ASKER);
    env.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    wait_for_screen(&env, "ann", "It asks");
    let paused_server = PausedTmuxServer::new(&env);
    let status = env.teamctl(["status"]);
    assert!(status.code == 0 && status.stdout.contains("running?dialog"), "{status:?}");
    assert_eq!(env.flags("ann"), json!(["dialog_unknown"]));
    drop(paused_server);
    type_answer(&env, "ann", "ask");
    wait_for_flags(&env, "ann", &json!(["at_dialog"]));
    env.shut_down();
}

#[test]
fn menu_of_a_usage_limit_shows_until_when() {
    let env = TestEnv::with_team();
    let script =
        "printf 'You hit it, resets in 3 hours\\n\\n Do you wait?\\n > 1. Wait\\n   2. Pay\\n'; exec cat";
    let program = env.write_script("menu", &format!("#!/bin/sh\n{script}\n"));
    let profile = format!(
        "delivery = 'pull'\nprogram = '{}'\ndialogs = [\"Do you wait?\\n1. Wait\"]\nlimits = ['resets {{time}} * 1. Wait']\n",
        program.display()
    );
    env.write_profile("menu", &profile);
    env.teamctl(["spawn", "ann", "--profile", "menu"]).expect_success();
    wait_for_flags(&env, "ann", &json!(["at_dialog", "limited"]));
    let ann = env.member("ann").unwrap();
    let text = format!("limited until {}", ann["usage_limit"]["local_time"].as_str().unwrap());
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.contains(&format!("running!dialog!{text}")), "{status}");
    let causes = env.json(["why", "ann"])["causes"].clone();
    assert_eq!(causes[0]["cause"], "at_dialog", "{causes}");
    assert_eq!(causes[0]["evidence"], json!(["Do you wait?", format!("it is {text}")]));
    env.wait_until("the limit is logged", || {
        let events = env.teamctl(["events", "--kind", "member_limited", "--since", "1h"]).expect_success();
        events.contains(&format!("ann@survey is {text} (Do you wait?)")).then_some(())
    });
    env.shut_down();
}
