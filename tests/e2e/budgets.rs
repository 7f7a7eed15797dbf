//! Budgets of a team in turns, time, tokens and cost: what is counted, what happens when a budget
//! is used up, and how it is raised.

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
    env.wait_until("the event log has the end of the budget", || {
        env.events().iter().any(|event| event["event"] == "budget_exhausted").then_some(())
    });
    // The turn that runs is not ended.
    env.wait_until("ann has the shutdown request", || {
        env.inbox("survey", "ann")
            .iter()
            .any(|message| message["text"].as_str().unwrap().contains("shutdown_request"))
            .then_some(())
    });
    env.open_gate("out/go");
    env.wait_until("ann has ended", || env.member("ann").is_none().then_some(()));
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.contains("stopped: its budget of 2 turns is used up, 2 of 2 turns"), "{status}");
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_failure(76);
    let count_open_tasks = || {
        let tasks = env.json(["task", "list"])["tasks"].as_array().unwrap().clone();
        tasks.iter().filter(|task| task["status"] != "completed").count()
    };
    assert_eq!(count_open_tasks(), 2, "two of four tasks are completed in two turns");
    env.teamctl(["up", "--resume", "-t", "survey"]).expect_failure(76);
    let output = env.teamctl(["up", "--resume"]).expect_success();
    let help = "No member of survey is started: its budget of 2 turns is used up.\n  give it more with: teamctl policy FILE -t survey";
    assert!(output.contains(help) && !output.contains("no suspended members"), "{output}");
    let output = env.teamctl(["up"]).expect_success();
    assert!(output.contains(help) && !output.contains("resume it with"), "{output}");
    let status = env.teamctl(["status"]).expect_success();
    assert!(!status.contains("1 member is suspended"), "{status}");
    let line = "used up; give it more with: teamctl policy FILE; then resume the suspended members with: teamctl up --resume";
    assert!(status.contains(line), "{status}");
    let path = write_policy(&env, "max_turns = 100");
    let output = env.teamctl(["policy", &path]).expect_success();
    assert!(output.contains("at most 100 turns"), "{output}");
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
    env.wait_until("the time budget is used up", || {
        env.json(["status"])["teams"][0]["budget"]["exhausted_reason"].is_string().then_some(())
    });
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_failure(76);
    env.write_file("out/policy.toml", "[policy]\nmax_turns = \"many\"\n");
    env.teamctl(["policy", &path]).expect_failure(65);
    env.shut_down();
}

/// A profile whose program reports the total usage of its session at each turn, as Codex does.
const COUNTER_PROFILE: &str = r#"
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
    env.write_profile("counter", COUNTER_PROFILE);
    let path = write_policy(&env, "max_tokens = 1_300\nmax_cost = 100");
    env.teamctl(["create", "survey", "--policy", &path]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "counter", "--prompt", "go"]).expect_success();
    let wait_for_usage = |tokens: u64| {
        env.wait_until(&format!("the usage is {tokens} tokens"), || {
            let status = env.json(["status"]);
            (status["teams"][0]["budget"]["usage"]["tokens"] == tokens).then_some(status)
        })
    };
    let status = wait_for_usage(500);
    let ann = status["teams"][0]["members"].as_array().unwrap().iter().find(|member| member["name"] == "ann");
    assert_eq!(ann.unwrap()["usage"]["tokens"], 500, "{status}");
    let output = env.teamctl(["status"]).expect_success();
    assert!(
        output.contains("500 of 1.3k tokens, $0.50 of $100.00") && output.contains("500 $0.50"),
        "{output}"
    );
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["send", "ann", "more"]).expect_success();
    wait_for_usage(900);
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.wait_until("ann has ended", || env.member("ann").is_none().then_some(()));
    let output = env.teamctl(["status"]).expect_success();
    assert!(output.contains("900 $0.50"), "the usage of a member that has ended is shown: {output}");
    env.teamctl(["spawn", "bob", "--profile", "counter", "--prompt", "go"]).expect_success();
    env.wait_until("the token budget is used up", || {
        let reason = env.json(["status"])["teams"][0]["budget"]["exhausted_reason"].clone();
        (reason == "its budget of 1.3k tokens is used up").then_some(())
    });
    env.shut_down();
}
