//! Checks task lists and workers: blockers, failures, environment of task commands, concurrent
//! creation and claims.

use harness::TestEnv;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};

#[test]
fn blocked_task_runs_after_its_blockers() {
    let env = TestEnv::with_team();
    let out = env.path("out").display().to_string();
    let mut blockers = Vec::new();
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        let metadata =
            format!("{{\"command\": \"echo {text} > {out}/{name}; echo working on $TASK_SUBJECT\"}}");
        let task = env.json(["task", "create", name, "--metadata", &metadata]);
        blockers.push(task["task"]["id"].as_str().unwrap().to_owned());
    }
    let metadata = format!("{{\"command\": \"cat {out}/a {out}/b {out}/c > {out}/report\"}}");
    let [a, b, c] = [&blockers[0], &blockers[1], &blockers[2]];
    env.teamctl([
        "task",
        "create",
        "report",
        "--metadata",
        &metadata,
        "--blocked-by",
        a,
        "--blocked-by",
        b,
        "--blocked-by",
        c,
    ])
    .expect_success();
    for name in ["ann", "bob", "cat"] {
        env.teamctl(["spawn", name, "--profile", "worker"]).expect_success();
    }
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    assert_eq!(env.read("out/report"), "one\ntwo\nthree\n");
    // The worker completes the task in its file before it notifies the lead.
    env.wait_until("the lead has an idle notification for each task", || {
        let inbox = env.inbox("survey", "team-lead");
        let texts = inbox.iter().filter_map(|message| message["text"].as_str());
        let completions = texts.filter(|text| text.contains("\"completedStatus\":\"completed\""));
        (completions.count() == 4).then_some(())
    });
    env.teamctl(["shutdown", "--all"]).expect_success();
    env.teamctl(["delete", "survey"]).expect_success();
    env.shut_down();
}

/// Completed tasks keep their content when a worker ends, when `doctor --fix` runs and when a new
/// daemon scans the files.
#[test]
fn completed_tasks_survive_cleanup() {
    let env = TestEnv::with_team();
    for subject in ["one", "two", "three"] {
        let task = env.json(["task", "create", subject, "--description", "all of it"]);
        env.teamctl(["task", "done", task["task"]["id"].as_str().unwrap()]).expect_success();
    }
    let before = env.tasks("survey");
    assert_eq!(before.iter().filter(|task| task["status"] == "completed").count(), 3);
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.teamctl(["doctor", "--fix"]).expect_success();
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["task", "list"]).expect_success();
    let after = env.tasks("survey");
    assert!(before.iter().all(|task| after.contains(task)), "{after:?}");
    env.teamctl(["delete", "survey"]).expect_success();
    env.shut_down();
}

#[test]
fn idle_worker_takes_its_own_task_first() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    env.teamctl(["task", "create", "free", "--metadata", r#"{"command": "true"}"#]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.teamctl(["task", "create", "hers", "--owner", "ann", "--metadata", r#"{"command": "true"}"#])
        .expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    let tasks = env.json(["task", "list"]);
    assert!(tasks["tasks"].as_array().unwrap().iter().all(|task| task["owner"] == "ann"), "{tasks:#}");
    env.shut_down();
}

#[test]
fn failed_task_stays_with_its_reason() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "bad", "--metadata", r#"{"command": "exit 7"}"#]).expect_success();
    let task = env.wait_until("the task has failed", || {
        let task = env.json(["task", "get", "2"])["task"].clone();
        task["metadata"]["failure"].is_string().then_some(task)
    });
    assert_eq!(task["metadata"]["failure"], "exit 7");
    assert_eq!(task["status"], "in_progress");
    assert_eq!(task["owner"], "ann");
    env.wait_until("the lead has the reason of the failure", || {
        let inbox = env.inbox("survey", "team-lead");
        inbox
            .iter()
            .any(|m| m["text"].as_str().is_some_and(|t| t.contains("\"failureReason\":\"exit 7")))
            .then_some(())
    });
    env.shut_down();
}

#[test]
fn teammate_cannot_add_a_command() {
    let env = TestEnv::with_team();
    let script = "teamctl task create evil --metadata '{\"command\": \"touch out/evil\"}'; echo $? >out/code";
    env.teamctl(["spawn", "ann", "--cwd", &env.path("").display().to_string(), "--", "sh", "-c", script])
        .expect_success();
    let code = env.wait_until("ann has tried to create a task", || {
        Some(env.read("out/code")).filter(|code| code.ends_with('\n'))
    });
    assert_eq!(code, "77\n");
    env.shut_down();
}

#[test]
fn task_command_gets_the_task_and_no_stdin() {
    let env = TestEnv::with_team();
    let out = env.path("out/seen").display().to_string();
    let command = format!(
        "printf '%s|%s|%s|' \"$TASK_ID\" \"$TASK_SUBJECT\" \"$TASK_DESCRIPTION\" > {out}; cat >> {out}"
    );
    let metadata = json!({ "command": command }).to_string();
    let args =
        ["task", "create", "$(touch evil); `x`", "--description", "two\nlines", "--metadata", &metadata];
    env.teamctl(args).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    assert_eq!(env.read("out/seen"), "1|$(touch evil); `x`|two\nlines|");
    env.shut_down();
}

/// Runs the shell script as sixteen members at the same time. Returns the output of each.
fn run_sixteen(env: &TestEnv, script: &str) -> Vec<String> {
    let start = |number: usize| {
        let mut command = env.command("sh");
        command.args(["-c", script]).env("TEAMD_MEMBER", format!("w{number}")).env("TEAMD_TEAM", "survey");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..16).map(start).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().unwrap());
    outputs.map(|output| String::from_utf8(output.stdout).unwrap()).collect()
}

/// The task ids in the output, which has one JSON object per line.
fn printed_ids(output: &str) -> Vec<u64> {
    let lines = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["task"]["id"].as_str()?.parse().ok()).collect()
}

#[test]
fn concurrent_creators_and_claimers_get_each_task_once() {
    let env = TestEnv::with_team();
    let create = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do teamctl --json task create $n || exit; done";
    let ids: Vec<u64> = run_sixteen(&env, create).iter().flat_map(|output| printed_ids(output)).collect();
    assert_eq!(ids.len(), 208, "every creation succeeds");
    assert_eq!(BTreeSet::from_iter(ids), BTreeSet::from_iter(1..=208), "the ids are unique and without gaps");
    for number in 0..16 {
        env.teamctl(["spawn", &format!("w{number}"), "--", "sleep", "3600"]).expect_success();
    }
    let claim = "while teamctl --json task claim; do :; done";
    let outputs = run_sixteen(&env, claim);
    let mut owners: Vec<(u64, usize)> = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        owners.extend(printed_ids(output).into_iter().map(|id| (id, number)));
        let last: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
        let message = last["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("cannot claim a task: none is available in team survey"), "{message}");
    }
    owners.sort_unstable();
    assert_eq!(owners.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=208).collect::<Vec<_>>());
    let tasks = env.json(["task", "list"]);
    for (task, (_, number)) in tasks["tasks"].as_array().unwrap().iter().zip(&owners) {
        assert_eq!((&task["status"], &task["owner"]), (&"in_progress".into(), &format!("w{number}").into()));
    }
    for number in 0..16 {
        let messages = env.inbox("survey", &format!("w{number}"));
        let assignments = messages.iter().filter(|m| m["text"].as_str().unwrap().contains("task_assignment"));
        assert_eq!(assignments.count(), owners.iter().filter(|(_, owner)| *owner == number).count());
    }
    env.shut_down();
}

#[test]
fn blocked_task_and_cycle_are_rejected_everywhere() {
    let env = TestEnv::with_team();
    for subject in ["first", "second", "third"] {
        env.teamctl(["task", "create", subject]).expect_success();
    }
    env.teamctl(["task", "done", "3"]).expect_success();
    for task in ["2", "3"] {
        env.teamctl(["task", "update", task, "--add-blocked-by", "1"]).expect_success();
    }
    env.teamctl(["task", "claim", "1"]).expect_success();
    let assert_rejected = |args: &[&str], code: i32, message: &str| {
        let output = env.teamctl_with(args, &[]);
        assert_eq!(output.code, code, "{output:#?}");
        assert!(output.stderr.contains(message), "{output:#?}");
    };
    let blocked_message = |task: &str| format!("cannot start task {task}: it waits for 1");
    assert_rejected(&["task", "claim", "2"], 76, &blocked_message("2"));
    assert_rejected(&["task", "claim"], 67, "none is available");
    assert_rejected(&["task", "update", "2", "--status", "in-progress"], 76, &blocked_message("2"));
    assert_rejected(
        &["task", "update", "2", "--status", "in-progress", "--owner", "team-lead"],
        76,
        &blocked_message("2"),
    );
    assert_rejected(&["task", "update", "3", "--status", "in-progress"], 76, &blocked_message("3"));
    assert_rejected(&["task", "claim", "1"], 73, "team-lead has it already, and it is in progress");
    assert_rejected(&["task", "claim", "3"], 76, "it is completed");
    assert_rejected(&["task", "update", "1", "--add-blocked-by", "2"], 76, "1, 2, 1 would wait for itself");
    assert_rejected(&["task", "update", "2", "--add-blocked-by", "9"], 67, "cannot find task 9");
    assert_rejected(&["task", "create", "x", "--blocked-by", "9"], 67, "cannot find task 9");
    env.teamctl(["task", "done", "1"]).expect_success();
    env.teamctl(["task", "claim", "2"]).expect_success();
    env.shut_down();
}

#[test]
fn files_that_are_no_tasks_are_named() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "dig"]).expect_success();
    env.teamctl(["task", "done", "1"]).expect_success();
    env.write_file("root/tasks/survey/abc.json", "{}");
    let error = env.teamctl(["wait", "--for", "tasks-done"]).expect_failure(1);
    assert!(error.contains("is a number, not abc.json"), "{error}");
    assert!(error.contains("abc.json makes this fail"), "{error}");
    let list = env.teamctl(["task", "list"]);
    assert!(list.code == 0 && list.stderr.contains("abc.json is not shown"), "{list:#?}");
    std::fs::remove_file(env.path("root/tasks/survey/abc.json")).unwrap();
    env.write_file("root/tasks/survey/7.json", "{");
    let error = env.teamctl(["wait", "--for", "tasks-done", "--timeout", "100ms"]).expect_failure(75);
    assert!(error.contains("task 7 keeps this waiting"), "{error}");
    env.shut_down();
}
