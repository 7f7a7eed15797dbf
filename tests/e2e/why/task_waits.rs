//! Causes of `teamctl why`: ann's tasks are blocked or wait for each other, or all tasks belong to
//! other members.

use super::{assert_first_cause, run_suggested_command, spawn_idle_agent, spawn_worker};
use harness::TestEnv;

fn spawn_bob(env: &TestEnv) {
    env.teamctl(["spawn", "bob", "--", &env.scripted_agent_path(), "stay"]).expect_success();
}

fn create_task(env: &TestEnv, args: &[&str]) -> String {
    let output = env.teamctl_with(&[&["--json", "task", "create", "think"], args].concat(), &[]);
    output.json()["task"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn blocked_by_anothers_task() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    spawn_bob(&env);
    let first = create_task(&env, &["--owner", "bob"]);
    create_task(&env, &["--owner", "ann", "--command", "true", "--blocked-by", &first]);
    let cause = assert_first_cause(&env, "blocked");
    assert!(cause["evidence"][0].as_str().unwrap().contains("bob's, not begun"), "{cause}");
    assert!(run_suggested_command(&env, &cause).contains("bob"));
    env.shut_down();
}

#[test]
fn blocked_by_an_unowned_task() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let first = create_task(&env, &[]);
    create_task(&env, &["--owner", "ann", "--blocked-by", &first]);
    let cause = assert_first_cause(&env, "blockers_unowned");
    run_suggested_command(&env, &cause);
    assert_eq!(env.json(["task", "get", &first])["task"]["owner"], "ann");
    env.shut_down();
}

#[test]
fn chain_reports_its_last_blocker() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    spawn_bob(&env);
    let first = create_task(&env, &["--owner", "bob"]);
    let second = create_task(&env, &["--blocked-by", &first]);
    let third = create_task(&env, &["--owner", "ann", "--command", "true", "--blocked-by", &second]);
    let cause = assert_first_cause(&env, "blocked");
    let line = format!("task {third} waits for task {first} (think), which is bob's, not begun");
    assert_eq!(cause["evidence"], serde_json::json!([line]));
    assert!(run_suggested_command(&env, &cause).contains("bob"));
    env.shut_down();
}

#[test]
fn all_tasks_owned_by_others() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    spawn_bob(&env);
    create_task(&env, &["--owner", "bob"]);
    let cause = assert_first_cause(&env, "tasks_owned_by_others");
    run_suggested_command(&env, &cause);
    let id = cause["next"][0].as_str().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(env.json(["task", "get", id])["task"]["owner"], "ann");
    env.shut_down();
}

/// The test writes the second dependency into the file, because teamctl rejects cycles.
#[test]
fn tasks_that_wait_for_each_other_are_named_everywhere() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let first = create_task(&env, &["--owner", "ann"]);
    let second = create_task(&env, &["--blocked-by", &first]);
    let path = env.root().join(format!("tasks/survey/{first}.json"));
    let mut task: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    task["blockedBy"] = serde_json::json!([second]);
    env.write_file(&format!("root/tasks/survey/{first}.json"), task.to_string());
    let cycle = format!("tasks {first}, {second} wait for each other");
    assert!(env.teamctl(["status"]).expect_success().contains(&cycle));
    let command = format!("teamctl task -t survey update {first} --remove-blocked-by {second}");
    let doctor = env.teamctl(["doctor"]).stdout;
    assert!(doctor.contains(&cycle) && doctor.contains(&command), "{doctor}");
    assert!(
        env.teamctl(["doctor", "--fix"]).stdout.contains(&cycle),
        "doctor --fix does not change dependencies"
    );
    let output = env.teamctl(["wait", "--for", "tasks-done"]);
    assert!(output.code == 1 && output.stderr.contains(&cycle), "{output:?}");
    let cause = assert_first_cause(&env, "task_cycle");
    run_suggested_command(&env, &cause);
    assert!(!env.teamctl(["status"]).expect_success().contains(&cycle));
    env.shut_down();
}
