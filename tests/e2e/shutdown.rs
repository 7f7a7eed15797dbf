//! Members are asked to end: yes, no, silence, force; and nothing of theirs is left.

use harness::{TaggedProcesses, TestEnv};

#[test]
fn worker_approves_shutdown() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let ended = env.json(["shutdown", "ann", "--reason", "thank you"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended}");
    let id = ended["request_id"].as_str().unwrap();
    assert!(id.starts_with("shutdown-") && id.ends_with("@ann"), "{id}");
    assert_eq!(env.member("ann"), None);
    let lead = env.inbox("survey", "team-lead");
    let texts: Vec<&str> = lead.iter().filter_map(|message| message["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("shutdown_approved") && text.contains(id)), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("teammate_terminated")), "{texts:?}");
    let asked = env.inbox("survey", "ann");
    assert!(asked.iter().all(|message| message["read"] == true), "{asked:?}");
    let tracking: serde_json::Value = serde_json::from_str(&env.read("root/tasks/survey/1.json")).unwrap();
    assert_eq!(tracking["status"], "completed");
    env.shut_down();
}

#[test]
fn missing_answer_is_not_an_approval() {
    let env = TestEnv::with_team();
    let pid = env.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].to_string();
    // As silent as can be: it does nothing at all.
    assert!(std::process::Command::new("kill").args(["-s", "STOP", &pid]).status().unwrap().success());
    let ran = env.teamctl(["shutdown", "ann", "--grace", "200ms"]);
    assert_eq!(ran.code, 75, "{ran:?}");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    let ended = env.json(["shutdown", "ann", "--grace", "200ms", "--force"]);
    assert_eq!(ended["exits"][0]["has_exited"], true, "{ended}");
    env.shut_down();
}

#[test]
fn agent_answers_with_answer_shutdown() {
    let env = TestEnv::with_team();
    // A shell script as a teammate: woken by its line, it finds the request and answers.
    let script = "while read _ <&$TEAMD_WAKE_FD; do
        id=$(teamctl inbox --unread --json | grep -o 'shutdown-[0-9]*@ann' | head -1)
        [ -n \"$id\" ] && teamctl answer-shutdown $id --approve && exit 0
    done";
    env.teamctl(["spawn", "ann", "--", "sh", "-c", script]).expect_success();
    let ended = env.json(["shutdown", "ann"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended}");
    env.shut_down();
}

#[test]
fn shutdown_leaves_nothing_behind() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob", "cat"] {
        env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "children"]).expect_success();
    }
    for name in ["ann", "bob", "cat"] {
        env.wait_until("its children run", || {
            env.teamctl(["capture", name]).expect_success().contains("children are out").then_some(())
        });
    }
    let tokens: Vec<String> = TaggedProcesses::with_tag(&env.process_tag()).list();
    assert!(tokens.iter().filter(|line| line.contains("sleep 3600")).count() >= 18, "{tokens:#?}");
    env.teamctl(["shutdown", "--all", "--grace", "100ms", "--force"]).expect_success();
    let left: Vec<String> = TaggedProcesses::with_tag(&env.process_tag()).list();
    let left: Vec<&String> = left.iter().filter(|line| line.contains("sleep 3600")).collect();
    assert!(left.is_empty(), "{left:#?}");
    env.shut_down();
}

#[test]
fn old_request_does_not_end_a_new_member() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    assert_eq!(env.teamctl(["shutdown", "ann", "--grace", "100ms"]).code, 75);
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.wait_until("it idles", || (env.member("ann")?["activity"] == "idle").then_some(()));
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

#[test]
fn shutdown_of_an_empty_team_succeeds() {
    let env = TestEnv::with_team();
    env.teamctl(["shutdown", "--all"]).expect_success();
    env.shut_down();
}
