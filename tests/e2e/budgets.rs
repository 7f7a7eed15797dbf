//! A team with a budget, from its first turn to the day after.

use harness::TestEnv;

fn write_policy(env: &TestEnv, keys: &str) -> String {
    env.write_file("out/policy.toml", format!("[policy]\npermissions = \"lead\"\nplans = \"lead\"\n{keys}\n"))
}

fn create_task(env: &TestEnv, command: &str) {
    let metadata = serde_json::json!({ "command": command }).to_string();
    env.teamctl(["task", "create", "count", "--metadata", &metadata]).expect_success();
}

#[test]
fn turn_budget_stops_the_team_until_it_is_raised() {
    let env = TestEnv::new();
    env.start_daemon();
    let path = write_policy(&env, "max_turns = 2");
    env.teamctl(["create", "survey", "--policy", &path]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let gate = env.create_gate("out/go");
    for command in ["true", &format!("read line <{gate}"), "true", "true"] {
        create_task(&env, command);
    }
    env.wait_until("it is told", || {
        env.events().iter().any(|event| event["event"] == "budget_exhausted").then_some(())
    });
    // Its last turn comes to its end.
    env.wait_until("ann is asked to end", || {
        env.inbox("survey", "ann")
            .iter()
            .any(|it| it["text"].as_str().unwrap().contains("shutdown_request"))
            .then_some(())
    });
    env.open_gate("out/go");
    env.wait_until("ann has ended", || env.member("ann").is_none().then_some(()));
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.contains("stopped: its budget of 2 turns is used up, 2 of 2 turns"), "{status}");
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_failure(76);
    let open = || {
        let tasks = env.json(["task", "list"])["tasks"].as_array().unwrap().clone();
        tasks.iter().filter(|task| task["status"] != "completed").count()
    };
    assert_eq!(open(), 2, "each turn is a task");
    env.teamctl(["up", "--resume", "-t", "survey"]).expect_failure(76);
    let ran = env.teamctl(["up", "--resume"]).expect_success();
    let hint = "No member of survey is started: its budget of 2 turns is used up.\n  give it more with: teamctl policy FILE -t survey";
    assert!(ran.contains(hint) && !ran.contains("no suspended members"), "{ran}");
    let ran = env.teamctl(["up"]).expect_success();
    assert!(ran.contains(hint) && !ran.contains("resume it with"), "{ran}");
    let status = env.teamctl(["status"]).expect_success();
    assert!(!status.contains("1 member is suspended"), "{status}");
    let line = "used up; give it more with: teamctl policy FILE; then resume the suspended members with: teamctl up --resume";
    assert!(status.contains(line), "{status}");
    let path = write_policy(&env, "max_turns = 100");
    let ran = env.teamctl(["policy", &path]).expect_success();
    assert!(ran.contains("at most 100 turns"), "{ran}");
    env.teamctl(["up", "--resume"]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    assert!(env.teamctl(["policy"]).expect_success().contains("at most 100 turns"));
    env.shut_down();
}

#[test]
fn time_budget_stops_the_team() {
    let env = TestEnv::new();
    env.start_daemon();
    let path = write_policy(&env, "max_time = \"1s\"");
    env.teamctl(["create", "survey", "--policy", &path]).expect_success();
    let status = env.json(["status"]);
    assert_eq!(status["teams"][0]["budget"]["max_time_ms"], 1_000, "{status}");
    env.wait_until("its time is over", || {
        env.json(["status"])["teams"][0]["budget"]["exhausted_reason"].is_string().then_some(())
    });
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_failure(76);
    env.write_file("out/policy.toml", "[policy]\nmax_turns = \"many\"\n");
    env.teamctl(["policy", &path]).expect_failure(65);
    env.shut_down();
}

/// It tells all that its session has used up so far, as Codex does.
const TELLS: &str = r#"
description = "counts"
delivery = "turn"
program = "sh"
args = ["-c", "n=$(($(cat out/used 2>/dev/null || echo 0) + 400)); echo $n >out/used; echo '{\"id\":\"s-1\"}'; echo '{\"usage\":{\"in\":'$n',\"out\":100},\"cost\":0.5}'; : {prompt}"]
resume_args = ["-c", "n=$(($(cat out/used) + 400)); echo $n >out/used; echo '{\"usage\":{\"in\":'$n',\"out\":100},\"cost\":0.5}'; : {prompt} {session}"]
session = { output_key = "id" }
usage = { tokens = ["usage.in", "usage.out"], cost = "cost", scope = "session" }
"#;

#[test]
fn reported_usage_counts_across_spawns_and_daemons() {
    let env = TestEnv::new();
    env.start_daemon();
    env.write_profile("counter", TELLS);
    let path = write_policy(&env, "max_tokens = 1_300\nmax_cost = 100");
    env.teamctl(["create", "survey", "--policy", &path]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "counter", "--prompt", "go"]).expect_success();
    let used = |tokens: u64| {
        env.wait_until("it is counted", || {
            let status = env.json(["status"]);
            (status["teams"][0]["budget"]["usage"]["tokens"] == tokens).then_some(status)
        })
    };
    let status = used(500);
    let ann = status["teams"][0]["members"].as_array().unwrap().iter().find(|it| it["name"] == "ann");
    assert_eq!(ann.unwrap()["usage"]["tokens"], 500, "{status}");
    let shown = env.teamctl(["status"]).expect_success();
    assert!(shown.contains("500 of 1.3k tokens, $0.50 of $100.00") && shown.contains("500 $0.50"), "{shown}");
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["send", "ann", "more"]).expect_success();
    used(900);
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.wait_until("ann has ended", || env.member("ann").is_none().then_some(()));
    let shown = env.teamctl(["status"]).expect_success();
    assert!(shown.contains("900 $0.50"), "of who has ended too: {shown}");
    env.teamctl(["spawn", "bob", "--profile", "counter", "--prompt", "go"]).expect_success();
    env.wait_until("it is told", || {
        let spent = env.json(["status"])["teams"][0]["budget"]["exhausted_reason"].clone();
        (spent == "its budget of 1.3k tokens is used up").then_some(())
    });
    env.shut_down();
}
