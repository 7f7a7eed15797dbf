//! Checks runs whose team has exhausted its budget of turns or of time.

use super::{
    BLOCKING_COMMAND, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, started_tasks,
    unblock,
};
use harness::{CommandOutput, TestEnv};
use serde_json::Value;

/// Checks the error of a run that ended with an exhausted budget, as text and as JSON, and that the
/// run has kept its team. Returns the outcomes of the tasks.
fn assert_budget_exhausted(env: &TestEnv, output: CommandOutput, reason: &str) -> Vec<String> {
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stderr.contains(&format!("cannot run team survey to its end: {reason}")), "{output:#?}");
    assert!(output.stderr.contains("give it more in [policy] of its file"), "{output:#?}");
    let result = output.json();
    let error = &result["error"];
    let command = error["help"].as_str().unwrap().rsplit_once(": ").unwrap().1;
    assert!(
        error["kind"] == "partial" && command == format!("teamctl run {} --resume", run_file_path(env)),
        "{error}"
    );
    assert!(env.path("root/teams/survey/config.json").exists(), "the run keeps the team");
    outcomes(&result)
}

fn run_file_path(env: &TestEnv) -> String {
    env.path("team.toml").display().to_string()
}

/// Unblocks ann's task after ann has the shutdown request. ann finishes the turn and starts no
/// other one.
fn unblock_after_shutdown_request(env: &TestEnv) {
    let is_shutdown_request =
        |message: &Value| message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
    env.wait_until("ann has a shutdown request", || {
        env.inbox("survey", "ann").iter().any(is_shutdown_request).then_some(())
    });
    unblock(env);
}

#[test]
fn run_stops_at_the_turn_budget_and_continues_when_raised() {
    let env = TestEnv::with_daemon();
    let run_file_with = |policy| {
        run_file(["ann"]).policy(policy).task("a", "", "").task("b", BLOCKING_COMMAND, "").task("c", "", "")
    };
    let file = run_file_with("max_turns = 2").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    unblock_after_shutdown_request(&env);
    let expected = ["a completed", "b completed", "c not_done: it was not begun"];
    assert_eq!(assert_budget_exhausted(&env, finish_run(run), "its budget of 2 turns is used up"), expected);
    let output = env.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(assert_budget_exhausted(&env, output, "its budget of 2 turns is used up"), expected);
    run_file_with("max_turns = 20").write_run_file(&env);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "b", "c"], "completed tasks are not run again");
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn run_stops_at_the_time_budget_and_continues_when_raised() {
    let env = TestEnv::with_daemon();
    let tasks = run_file(["ann"]).policy("max_time = '8h'").task("slow", BLOCKING_COMMAND, "");
    let file = tasks.task("next", "", "blocked_by = ['slow']").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    let policy = env.write_file("out/policy.toml", "[policy]\nmax_time = '1ms'\n");
    env.teamctl(["policy", &policy, "-t", "survey"]).expect_success();
    unblock_after_shutdown_request(&env);
    let outcomes = assert_budget_exhausted(&env, finish_run(run), "its time is used up");
    assert_eq!(outcomes, ["slow completed", "next not_done: it was not begun"]);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["slow", "next"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn last_turn_of_the_budget_completes_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).policy("max_turns = 1").task("a", "", "").write_run_file(&env);
    let output = env.teamctl(["run", &file]).expect_success();
    assert!(output.contains("1 of 1 tasks are completed."), "{output}");
    assert_team_deleted(&env);
    env.shut_down();
}

/// The budget is exhausted before the run creates members and tasks.
#[test]
fn exhausted_budget_starts_nothing() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"]).policy("max_turns = 0").task("a", "", "").write_run_file(&env);
    let output = env.teamctl(["run", &file, "--json"]);
    let outcomes = assert_budget_exhausted(&env, output, "its budget of 0 turns is used up");
    assert_eq!(outcomes, ["a not_done: it was never made"]);
    let root = env.path("root").display().to_string();
    let args = ["run", &file, "--resume", "--json", "--root", &root];
    let output = env.teamctl_with(&args, &[("TEAMD_ROOT", "/nothing")]);
    let command = format!("teamctl run --root {root} {file} --resume");
    assert!(output.stderr.trim_end().ends_with(&command), "{output:#?}");
    assert!(output.json()["error"]["help"].as_str().unwrap().ends_with(&command));
    run_file(["ann", "bob"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_team_deleted(&env);
    env.shut_down();
}
