//! A host that a person forgets, and that comes back.

use super::config_of;
use harness::{TIMEOUT, TaggedProcesses, TestEnv, TwoHosts};
use serde_json::json;

fn task(home: &TestEnv) -> serde_json::Value {
    home.tasks("survey").into_iter().find(|task| task["subject"] == "sleep").unwrap()
}

fn is_listed(env: &TestEnv, name: &str) -> bool {
    config_of(env).is_some_and(|config| config["members"].to_string().contains(&format!("\"{name}\"")))
}

#[test]
fn forgotten_host_comes_back_and_its_old_members_end() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.teamctl(["task", "create", "sleep", "--command", "sleep 1000"]).expect_success();
    home.wait_until("ann has the task", || (task(home)["owner"] == "ann").then_some(()));
    let error = home.teamctl(["hosts", "forget", "devbox", "--yes"]).expect_failure(76);
    assert!(error.contains("it has contact, and runs ann of survey"), "{error}");
    hosts.cut();
    home.wait_until("the loss is noticed", || {
        (!hosts.contact()["contact"]["no_contact"].is_null()).then_some(())
    });
    let error = home.teamctl(["hosts", "forget", "devbox"]).expect_failure(64);
    assert!(error.contains("standard input is no terminal"), "{error}");
    let output = home.teamctl(["hosts", "forget", "devbox", "--yes"]).expect_success();
    assert!(output.contains("Deregistered: ann of survey."), "{output}");
    assert!(!is_listed(home, "ann"));
    assert_eq!((&task(home)["status"], &task(home)["owner"]), (&json!("pending"), &json!(null)));
    assert!(home.teamctl(["hosts", "forget", "devbox", "--yes"]).code != 0, "there is nothing to forget");
    home.wait_until("the event is logged", || {
        home.events().iter().any(|event| event["event"] == "host_forgotten").then_some(())
    });
    // A new daemon does not connect to the host either.
    home.kill_process(home.daemon_pid());
    home.start_daemon();
    assert!(hosts.contact().is_null());

    // The home takes none of the messages that ann sends now. The next use of the host ends ann.
    let pid = annex.member("ann").unwrap()["pid"].as_u64().unwrap();
    let ann = TaggedProcesses::single(pid.try_into().unwrap());
    annex.teamctl(["send", "team-lead", "I am still here"]).expect_success();
    hosts.heal();
    home.teamctl(["spawn", "bob", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.wait_until("bob has the task", || (task(home)["owner"] == "bob").then_some(()));
    assert!(annex.member("ann").is_none() && !is_listed(annex, "ann") && is_listed(home, "bob"));
    assert!(ann.exit_within(TIMEOUT), "ann has ended");
    hosts.wait_for_exchange();
    let inbox = home.inbox("survey", "team-lead");
    assert!(inbox.iter().all(|message| message["text"] != "I am still here"), "{inbox:?}");
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}
