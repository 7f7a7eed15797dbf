//! Teams with members on another host. The other host is a second environment on this machine. The
//! connect command runs a program with the variables of that environment.

mod branches;
mod budgets;
mod changed_connect;
mod env_of_member;
mod events;
mod forget_host;
mod members;
mod move_home;
mod no_contact;
mod over_network;
mod over_ssh;
mod resume;
mod run_file;
mod take_home;

use harness::TestEnv;
use serde_json::{Value, json};

/// The command that runs a program with the environment of `annex`.
fn connect_words(annex: &TestEnv) -> Vec<String> {
    let command = annex.command("teamctl");
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?)));
    ["env", "-i"].map(str::to_owned).into_iter().chain(variables).collect()
}

/// The connect command from the home to `annex`.
fn connect_command(annex: &TestEnv) -> Value {
    let words = ["teamctl", "annex", "--stdio"].map(str::to_owned);
    json!([connect_words(annex), words.to_vec()].concat())
}

fn use_host(home: &TestEnv, command: &Value) -> Value {
    home.call_daemon(None, &json!({"use_host": {"team": "survey", "host": "devbox", "command": command}}))
}

fn config_of(env: &TestEnv) -> Option<Value> {
    let path = env.root().join("teams/survey/config.json");
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[test]
fn team_is_mirrored_on_another_host_and_deleted_there() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    let reply = use_host(&home, &connect_command(&annex));
    assert_eq!(reply["done"], json!("ack"), "{reply}");
    assert_eq!(config_of(&annex).unwrap()["name"], json!("survey"));
    let status = home.call_daemon(None, &json!("status"));
    let team = &status["done"]["status"]["teams"][0];
    assert_eq!(team["hosts"], json!([{"host": "devbox", "contact": "connected"}]), "{team}");
    home.teamctl(["delete", "survey"]).expect_success();
    annex.wait_until("the mirror is deleted", || config_of(&annex).is_none().then_some(()));
    home.shut_down();
    annex.shut_down();
}

#[test]
fn unreachable_host_is_an_error_with_its_reason() {
    let home = TestEnv::with_team();
    let command = json!(["sh", "-c", "echo 'ssh: no such host' >&2; exit 255"]);
    let reply = use_host(&home, &command);
    let error = reply["failed"]["message"].as_str().unwrap_or_default();
    assert!(error.starts_with("cannot reach devbox: ") && error.ends_with("ssh: no such host"), "{reply}");
    assert_eq!(reply["failed"]["help"], json!("teamctl hosts check devbox"));
    home.wait_until("the event is logged", || {
        home.events().iter().any(|event| event["event"] == "host_lost").then_some(())
    });
    home.shut_down();
}

/// Waits until the home has everything that the annex had. `None` after an error.
fn await_host(home: &TestEnv) -> Option<()> {
    let reply = home.call_daemon(None, &json!({"await_host": {"team": "survey", "host": "devbox"}}));
    (reply["done"] == json!("ack")).then_some(())
}

#[test]
fn link_works_again_after_either_daemon_was_killed() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    assert_eq!(use_host(&home, &connect_command(&annex))["done"], json!("ack"));
    for killed in [&home, &annex] {
        killed.kill_process(killed.daemon_pid());
        killed.start_daemon();
        home.wait_until("the link works again", || await_host(&home));
    }
    home.teamctl(["task", "create", "count", "-t", "survey"]).expect_success();
    annex.wait_until("the task is in the mirror", || (annex.tasks("survey").len() == 1).then_some(()));
    home.teamctl(["delete", "survey"]).expect_success();
    annex.wait_until("the mirror is deleted", || config_of(&annex).is_none().then_some(()));
    home.shut_down();
    annex.shut_down();
}
