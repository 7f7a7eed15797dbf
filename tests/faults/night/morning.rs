//! The morning: the commands are asked what happened, and their answers are compared with the records.

use super::evening::first_cause;
use super::messages::{paused_exchanges, stop_exchange};
use super::records::{is_done, recorded_keys, task};
use super::team::{PLANNER, TASKS, WORKTREE_MEMBERS, git, run_printed_command, team_status};
use harness::TestEnv;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;

/// Checks the answers while the plan still waits.
pub(super) fn check_answers(env: &TestEnv, plan: &str) {
    check_status(env);
    check_stuck_members(env);
    check_tasks(env, |key| is_done(env, key));
    let requests = env.json(["requests"])["requests"].clone();
    assert_eq!(requests.as_array().map(Vec::len), Some(1), "{requests}");
    assert_eq!((&requests[0]["id"], &requests[0]["from"]), (&json!(plan), &json!(PLANNER)));
    check_events(env);
    check_branches(env);
    let error = env.teamctl(["wait", "--for", "tasks-done", "--timeout", "100ms"]).expect_failure(75);
    assert!(error.contains("still no"), "{error}");
}

/// The counts of `status` are those of the records: only the plan and the failed task are in progress, and
/// only the task that the failed one blocks is pending.
fn check_status(env: &TestEnv) {
    let done = recorded_keys().filter(|key| is_done(env, key)).count();
    assert_eq!(done, TASKS.len() - 3);
    let team = team_status(env).unwrap();
    let tasks = &team["tasks"];
    let counts = ["completed", "failed", "pending"].map(|state| tasks[state].as_u64());
    assert_eq!(counts, [Some(done as u64), Some(1), Some(1)], "{tasks}");
    assert_eq!(team["failed_tasks"].as_array().map(Vec::len), Some(1), "{team}");
    assert_eq!(team["failed_tasks"][0]["subject"], "do bad", "{team}");
    assert_eq!(team["interrupted_run"], Value::Null);
}

/// `why` names the members that wait: the planner, those whose exchange is paused, and the owner of the
/// failed task.
fn check_stuck_members(env: &TestEnv) {
    let answer = env.json(["why"]);
    let members = answer["members"].as_array().unwrap();
    let cause = |member: &Value| {
        (
            member["name"].as_str().unwrap().to_owned(),
            member["causes"][0]["cause"].as_str().unwrap().to_owned(),
        )
    };
    let stuck: BTreeMap<String, String> = members.iter().map(cause).collect();
    let of_cause = |cause: &str| -> BTreeSet<String> {
        stuck.iter().filter(|(_, found)| *found == cause).map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(of_cause("awaiting_plan_approval"), BTreeSet::from([PLANNER.to_owned()]), "{answer}");
    assert_eq!(of_cause("exchange_paused"), paused_exchanges(&team_status(env).unwrap()), "{answer}");
    let others = stuck
        .iter()
        .filter(|(_, cause)| !["awaiting_plan_approval", "exchange_paused"].contains(&cause.as_str()));
    assert_eq!(others.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["wil"], "{answer}");
}

/// Checks the status of each task of the run file in `task list`.
fn check_tasks(env: &TestEnv, is_done: impl Fn(&str) -> bool) {
    let list = env.json(["task", "list"])["tasks"].clone();
    assert_eq!(list.as_array().map(Vec::len), Some(TASKS.len()), "{list}");
    for (key, ..) in TASKS {
        let task = list.as_array().unwrap().iter().find(|task| task["metadata"]["key"] == key).unwrap();
        assert_eq!(task["status"] == "completed", is_done(key), "{task}");
    }
}

/// The event log has the completion of each task once, also if no daemon ran at that moment, and each
/// event that a person would look for.
fn check_events(env: &TestEnv) {
    let output = env.teamctl(["--json", "events", "--since", "1h", "-t", "night"]).expect_success();
    let events: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let mut completed: Vec<&str> = of_kind("task_completed")
        .iter()
        .filter_map(|event| event["subject"].as_str()?.strip_prefix("do "))
        .collect();
    completed.sort_unstable();
    let mut expected: Vec<&str> = recorded_keys().filter(|key| is_done(env, key)).collect();
    expected.sort_unstable();
    assert_eq!(completed, expected);
    for (kind, name) in [
        ("member_turns_failed", "ann"),
        ("member_no_output", "bob"),
        ("member_interrupted", "bob"),
        ("member_exited", "fay"),
        ("member_at_dialog", "gil"),
        ("member_suspended", "wim"),
    ] {
        assert!(of_kind(kind).iter().any(|event| event["member"] == name), "{kind} {name}: {output}");
    }
    assert!(!of_kind("member_exchange_paused").is_empty(), "{output}");
}

/// Each branch has one commit for each task that its member has done.
fn check_branches(env: &TestEnv) {
    for name in WORKTREE_MEMBERS {
        let branch = env.teamctl(["status", name, "--format", "branch"]).expect_success();
        assert_eq!(branch.trim_end(), format!("teamd/night/{name}"));
        let range = format!("main..{}", branch.trim_end());
        let log = git(env, &["log", "--format=%s", &range]);
        let mut commits: Vec<&str> = log.lines().collect();
        commits.sort_unstable();
        let list = env.json(["task", "list"])["tasks"].clone();
        let tasks = list.as_array().unwrap().iter();
        let own = tasks.filter(|task| task["owner"] == name && task["status"] == "completed");
        let mut keys: Vec<&str> = own.map(|task| task["metadata"]["key"].as_str().unwrap()).collect();
        keys.sort_unstable();
        assert_eq!(commits, keys, "{name}");
    }
}

/// Ends the exchange and approves the plan with the command that `why` names. The run then ends, and keeps
/// the team and the failed task.
pub(super) fn approve_plan(env: &TestEnv, mut run: Child, plan: &str) {
    stop_exchange(env);
    let cause = first_cause(env, PLANNER);
    assert_eq!(cause["next"][1], format!("teamctl approve {plan}"), "{cause}");
    run_printed_command(env, cause["next"][1].as_str().unwrap());
    assert_eq!(run.wait().unwrap().code(), Some(1), "{}", env.read("out/run"));
    let output = env.read("out/run");
    assert!(output.contains("18 of 20 tasks are completed."), "{output}");
    check_tasks(env, |key| !["bad", "after-bad"].contains(&key));
    let error = env.teamctl(["wait", "--for", "tasks-done"]).expect_failure(1);
    let bad = team_status(env).unwrap()["failed_tasks"][0]["id"].as_str().unwrap().to_owned();
    assert!(error.contains(&format!("task {bad} failed, and no other task can run")), "{error}");
    let status = env.teamctl(["status"]).expect_success();
    assert!(!status.contains("no run drives"), "{status}");
    assert_eq!(env.json(["requests"])["requests"], json!([]));
}

/// `report` names every task, why two are not done, and the branch of each member with its commits.
pub(super) fn check_report(env: &TestEnv) {
    let report = env.json(["report"]);
    for (key, ..) in TASKS {
        let (list, outcome) = match key {
            "bad" => ("tasks", "failed"),
            "after-bad" => ("open_tasks", "not_done"),
            _ => ("tasks", "completed"),
        };
        let task = report[list].as_array().unwrap().iter().find(|task| task["key"] == key);
        assert!(task.is_some_and(|task| task["outcome"] == outcome), "{key}: {report}");
    }
    let failures = report["failures"].as_array().unwrap();
    let is_exit_of_fay = |failure: &Value| failure["kind"] == "exit" && failure["member"] == "fay";
    assert!(failures.iter().any(is_exit_of_fay), "{report}");
    let branches = report["branches"].as_array().unwrap();
    assert_eq!(branches.len(), WORKTREE_MEMBERS.len(), "{report}");
    for branch in branches {
        let name = branch["branch"].as_str().unwrap();
        let count = git(env, &["rev-list", "--count", &format!("main..{name}")]);
        assert_eq!(branch["unmerged"].to_string(), count, "{report}");
    }
    let page = env.teamctl(["report"]).expect_success();
    let bad = task(env, "bad")["id"].as_str().unwrap().to_owned();
    let failed = "(do bad) of wil, twice: exit 1: no such file";
    let waits = format!("(do after-bad) of wil: waits for task {bad}\n");
    for fact in [failed, &waits].into_iter().chain(WORKTREE_MEMBERS) {
        assert!(page.contains(fact), "{fact}: {page}");
    }
}
