//! A run whose team has nothing left to use up.

use super::{
    HELD, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, started_tasks, unblock,
};
use harness::{CommandOutput, TestEnv};
use serde_json::Value;

/// What it says for people and for programs, and that the team is there for whoever goes on; what became of its tasks.
fn assert_budget_exhausted(env: &TestEnv, ran: CommandOutput, why: &str) -> Vec<String> {
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains(&format!("cannot run team survey to its end: {why}")), "{ran:#?}");
    assert!(ran.stderr.contains("give it more in [policy] of its file"), "{ran:#?}");
    let result = ran.json();
    let error = &result["error"];
    let next = error["help"].as_str().unwrap().rsplit_once(": ").unwrap().1;
    assert!(
        error["kind"] == "partial" && next == format!("teamctl run {} --resume", write_budget_file(env)),
        "{error}"
    );
    assert!(env.path("root/teams/survey/config.json").exists(), "the team stays");
    outcomes(&result)
}

fn write_budget_file(env: &TestEnv) -> String {
    env.path("team.toml").display().to_string()
}

/// Whoever is in a turn comes to its end, and has read by then that it is to begin no other.
fn unblock_after_shutdown_request(env: &TestEnv) {
    let asks = |letter: &Value| letter["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
    env.wait_until("she is asked to end", || env.inbox("survey", "ann").iter().any(asks).then_some(()));
    unblock(env);
}

#[test]
fn run_stops_at_the_turn_budget_and_continues_when_raised() {
    let env = TestEnv::with_daemon();
    let three =
        |policy| run_file(["ann"]).policy(policy).task("a", "", "").task("b", HELD, "").task("c", "", "");
    let file = three("max_turns = 2").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    unblock_after_shutdown_request(&env);
    let came = ["a completed", "b completed", "c not_done: it was not begun"];
    assert_eq!(assert_budget_exhausted(&env, finish_run(run), "its budget of 2 turns is used up"), came);
    let ran = env.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(assert_budget_exhausted(&env, ran, "its budget of 2 turns is used up"), came);
    three("max_turns = 20").write_run_file(&env);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "b", "c"], "what is completed never runs again");
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn run_stops_at_the_time_budget_and_continues_when_raised() {
    let env = TestEnv::with_daemon();
    let slow = run_file(["ann"]).policy("max_time = '8h'").task("slow", HELD, "");
    let file = slow.task("next", "", "blocked_by = ['slow']").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    let short = env.write_file("out/policy.toml", "[policy]\nmax_time = '1ms'\n");
    env.teamctl(["policy", &short, "-t", "survey"]).expect_success();
    unblock_after_shutdown_request(&env);
    let came = assert_budget_exhausted(&env, finish_run(run), "its time is used up");
    assert_eq!(came, ["slow completed", "next not_done: it was not begun"]);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["slow", "next"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn last_turn_of_the_budget_completes_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).policy("max_turns = 1").task("a", "", "").write_run_file(&env);
    let ran = env.teamctl(["run", &file]).expect_success();
    assert!(ran.contains("1 of 1 tasks are completed."), "{ran}");
    assert_team_deleted(&env);
    env.shut_down();
}

/// Before its members were there.
#[test]
fn exhausted_budget_starts_nothing() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"]).policy("max_turns = 0").task("a", "", "").write_run_file(&env);
    let ran = env.teamctl(["run", &file, "--json"]);
    let came = assert_budget_exhausted(&env, ran, "its budget of 0 turns is used up");
    assert_eq!(came, ["a not_done: it was never made"]);
    let root = env.path("root").display().to_string();
    let typed = ["run", &file, "--resume", "--json", "--root", &root];
    let ran = env.teamctl_with(&typed, &[("TEAMD_ROOT", "/nothing")]);
    let next = format!("teamctl run --root {root} {file} --resume");
    assert!(ran.stderr.trim_end().ends_with(&next), "{ran:#?}");
    assert!(ran.json()["error"]["help"].as_str().unwrap().ends_with(&next));
    run_file(["ann", "bob"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_team_deleted(&env);
    env.shut_down();
}
