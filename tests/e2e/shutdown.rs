//! Checks `teamctl shutdown`: approved and unanswered requests, `--force`, and that no process of
//! the members remains.

use harness::{TaggedProcesses, TestEnv};

#[test]
fn worker_approves_shutdown() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let result = env.json(["shutdown", "ann", "--reason", "thank you"]);
    assert_eq!(result["exits"][0]["description"], "approved", "{result}");
    let id = result["request_id"].as_str().unwrap();
    assert!(id.starts_with("shutdown-") && id.ends_with("@ann"), "{id}");
    assert_eq!(env.member("ann"), None);
    let messages = env.inbox("survey", "team-lead");
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("shutdown_approved") && text.contains(id)), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("teammate_terminated")), "{texts:?}");
    let inbox = env.inbox("survey", "ann");
    assert!(inbox.iter().all(|message| message["read"] == true), "{inbox:?}");
    let tracking: serde_json::Value = serde_json::from_str(&env.read("root/tasks/survey/1.json")).unwrap();
    assert_eq!(tracking["status"], "completed");
    env.shut_down();
}

#[test]
fn missing_answer_is_not_an_approval() {
    let env = TestEnv::with_team();
    let pid = env.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].to_string();
    // A stopped process cannot answer.
    assert!(std::process::Command::new("kill").args(["-s", "STOP", &pid]).status().unwrap().success());
    let output = env.teamctl(["shutdown", "ann", "--grace", "200ms"]);
    assert_eq!(output.code, 75, "{output:?}");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    let result = env.json(["shutdown", "ann", "--grace", "200ms", "--force"]);
    assert_eq!(result["exits"][0]["has_exited"], true, "{result}");
    env.shut_down();
}

#[test]
fn agent_answers_with_answer_shutdown() {
    let env = TestEnv::with_team();
    // The teammate is a shell script. A wake on its wake socket makes it look for the request and
    // answer it.
    let script = "while read _ <&$TEAMD_WAKE_FD; do
        id=$(teamctl inbox --unread --json | grep -o 'shutdown-[0-9]*@ann' | head -1)
        [ -n \"$id\" ] && teamctl answer-shutdown $id --approve && exit 0
    done";
    env.teamctl(["spawn", "ann", "--", "sh", "-c", script]).expect_success();
    let result = env.json(["shutdown", "ann"]);
    assert_eq!(result["exits"][0]["description"], "approved", "{result}");
    env.shut_down();
}

#[test]
fn shutdown_leaves_nothing_behind() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob", "cat"] {
        env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "children"]).expect_success();
    }
    for name in ["ann", "bob", "cat"] {
        env.wait_until(&format!("the children of {name} are running"), || {
            env.teamctl(["capture", name]).expect_success().contains("children are out").then_some(())
        });
    }
    let processes: Vec<String> = TaggedProcesses::with_tag(&env.process_tag()).list();
    assert!(processes.iter().filter(|line| line.contains("sleep 3600")).count() >= 18, "{processes:#?}");
    env.teamctl(["shutdown", "--all", "--grace", "100ms", "--force"]).expect_success();
    let remaining: Vec<String> = TaggedProcesses::with_tag(&env.process_tag()).list();
    let remaining: Vec<&String> = remaining.iter().filter(|line| line.contains("sleep 3600")).collect();
    assert!(remaining.is_empty(), "{remaining:#?}");
    env.shut_down();
}

#[test]
fn old_request_does_not_end_a_new_member() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    assert_eq!(env.teamctl(["shutdown", "ann", "--grace", "100ms"]).code, 75);
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

#[test]
fn shutdown_of_an_empty_team_succeeds() {
    let env = TestEnv::with_team();
    env.teamctl(["shutdown", "--all"]).expect_success();
    env.shut_down();
}
