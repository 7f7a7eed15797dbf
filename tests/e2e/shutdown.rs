//! Members are asked to end: yes, no, silence, force; and nothing of theirs is left.

use harness::{TaggedProcesses, TestEnv};

#[test]
fn worker_approves_shutdown() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let ended = house.json(["shutdown", "ann", "--reason", "thank you"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended}");
    let id = ended["request_id"].as_str().unwrap();
    assert!(id.starts_with("shutdown-") && id.ends_with("@ann"), "{id}");
    assert_eq!(house.member("ann"), None);
    let lead = house.inbox("survey", "team-lead");
    let texts: Vec<&str> = lead.iter().filter_map(|message| message["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("shutdown_approved") && text.contains(id)), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("teammate_terminated")), "{texts:?}");
    let asked = house.inbox("survey", "ann");
    assert!(asked.iter().all(|message| message["read"] == true), "{asked:?}");
    let tracking: serde_json::Value = serde_json::from_str(&house.read("root/tasks/survey/1.json")).unwrap();
    assert_eq!(tracking["status"], "completed");
    house.shut_down();
}

#[test]
fn missing_answer_is_not_an_approval() {
    let house = TestEnv::with_team();
    let pid = house.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].to_string();
    // As silent as can be: it does nothing at all.
    assert!(std::process::Command::new("kill").args(["-s", "STOP", &pid]).status().unwrap().success());
    let ran = house.teamctl(["shutdown", "ann", "--grace", "200ms"]);
    assert_eq!(ran.code, 75, "{ran:?}");
    assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    let ended = house.json(["shutdown", "ann", "--grace", "200ms", "--force"]);
    assert_eq!(ended["exits"][0]["has_exited"], true, "{ended}");
    house.shut_down();
}

#[test]
fn agent_answers_with_answer_shutdown() {
    let house = TestEnv::with_team();
    // A shell script as a teammate: woken by its line, it finds the request and answers.
    let script = "while read _ <&$TEAMD_WAKE_FD; do
        id=$(teamctl inbox --unread --json | grep -o 'shutdown-[0-9]*@ann' | head -1)
        [ -n \"$id\" ] && teamctl answer-shutdown $id --approve && exit 0
    done";
    house.teamctl(["spawn", "ann", "--", "sh", "-c", script]).expect_success();
    let ended = house.json(["shutdown", "ann"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended}");
    house.shut_down();
}

#[test]
fn shutdown_leaves_nothing_behind() {
    let house = TestEnv::with_team();
    for name in ["ann", "bob", "cat"] {
        house.teamctl(["spawn", name, "--", &house.scripted_agent_path(), "children"]).expect_success();
    }
    for name in ["ann", "bob", "cat"] {
        house.wait_until("its children run", || {
            house.teamctl(["capture", name]).expect_success().contains("children are out").then_some(())
        });
    }
    let tokens: Vec<String> = TaggedProcesses::with_tag(&house.process_tag()).list();
    assert!(tokens.iter().filter(|line| line.contains("sleep 3600")).count() >= 18, "{tokens:#?}");
    house.teamctl(["shutdown", "--all", "--grace", "100ms", "--force"]).expect_success();
    let left: Vec<String> = TaggedProcesses::with_tag(&house.process_tag()).list();
    let left: Vec<&String> = left.iter().filter(|line| line.contains("sleep 3600")).collect();
    assert!(left.is_empty(), "{left:#?}");
    house.shut_down();
}

#[test]
fn old_request_does_not_end_a_new_member() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    assert_eq!(house.teamctl(["shutdown", "ann", "--grace", "100ms"]).code, 75);
    house.teamctl(["kill", "ann"]).expect_success();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    house.wait_until("it idles", || (house.member("ann")?["activity"] == "idle").then_some(()));
    assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    house.shut_down();
}

#[test]
fn shutdown_of_an_empty_team_succeeds() {
    let house = TestEnv::with_team();
    house.teamctl(["shutdown", "--all"]).expect_success();
    house.shut_down();
}
