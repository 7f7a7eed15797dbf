//! Workers work, and the task list stands what they do to it.

use harness::House;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};

#[test]
fn three_workers_and_a_task_that_waits_for_the_others() {
    let house = House::with_team();
    let out = house.path("out").display().to_string();
    let mut blockers = Vec::new();
    for (name, what) in [("a", "one"), ("b", "two"), ("c", "three")] {
        let metadata =
            format!("{{\"command\": \"echo {what} > {out}/{name}; echo working on $TASK_SUBJECT\"}}");
        let task = house.json(["task", "create", name, "--metadata", &metadata]);
        blockers.push(task["task"]["id"].as_str().unwrap().to_owned());
    }
    let metadata = format!("{{\"command\": \"cat {out}/a {out}/b {out}/c > {out}/report\"}}");
    let [a, b, c] = [&blockers[0], &blockers[1], &blockers[2]];
    house
        .teamctl([
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
        .ok();
    for name in ["ann", "bob", "cat"] {
        house.teamctl(["spawn", name, "--agent", "worker"]).ok();
    }
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    assert_eq!(house.read("out/report"), "one\ntwo\nthree\n");
    // A task is completed in its file first; then the lead is told.
    house.until("the lead is told of each", || {
        let lead = house.inbox("survey", "team-lead");
        let texts = lead.iter().filter_map(|message| message["text"].as_str());
        let done = texts.filter(|text| text.contains("\"completedStatus\":\"completed\""));
        (done.count() == 4).then_some(())
    });
    house.teamctl(["shutdown", "--all"]).ok();
    house.teamctl(["delete", "survey"]).ok();
    house.end();
}

/// By the end of their worker, a look for damage, a new daemon and its look at all there is: with all that is in them.
#[test]
fn completed_tasks_stay_whoever_cleans_up() {
    let house = House::with_team();
    for subject in ["one", "two", "three"] {
        let task = house.json(["task", "create", subject, "--description", "all of it"]);
        house.teamctl(["task", "done", task["task"]["id"].as_str().unwrap()]).ok();
    }
    let before = house.tasks("survey");
    assert_eq!(before.iter().filter(|task| task["status"] == "completed").count(), 3);
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.teamctl(["shutdown", "ann"]).ok();
    house.teamctl(["doctor", "--fix"]).ok();
    house.kill_9(house.daemon());
    house.start_daemon();
    house.teamctl(["task", "list"]).ok();
    let after = house.tasks("survey");
    assert!(before.iter().all(|task| after.contains(task)), "{after:?}");
    house.teamctl(["delete", "survey"]).ok();
    house.end();
}

#[test]
fn an_idle_worker_wakes_for_a_new_task_and_for_its_own_first() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.until("it idles", || (house.member("ann")?["activity"] == "idle").then_some(()));
    house.teamctl(["task", "create", "free", "--metadata", r#"{"command": "true"}"#]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    house.teamctl(["task", "create", "hers", "--owner", "ann", "--metadata", r#"{"command": "true"}"#]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    let tasks = house.json(["task", "list"]);
    assert!(tasks["tasks"].as_array().unwrap().iter().all(|task| task["owner"] == "ann"), "{tasks:#}");
    house.end();
}

#[test]
fn a_task_that_fails_stays_and_says_why() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.teamctl(["task", "create", "bad", "--metadata", r#"{"command": "exit 7"}"#]).ok();
    let task = house.until("it has failed", || {
        let task = house.json(["task", "get", "2"])["task"].clone();
        task["metadata"]["failure"].is_string().then_some(task)
    });
    assert_eq!(task["metadata"]["failure"], "exit 7");
    assert_eq!(task["status"], "in_progress");
    assert_eq!(task["owner"], "ann");
    house.until("the lead is told", || {
        let lead = house.inbox("survey", "team-lead");
        lead.iter()
            .any(|m| m["text"].as_str().is_some_and(|t| t.contains("\"failureReason\":\"exit 7")))
            .then_some(())
    });
    house.end();
}

#[test]
fn a_teammate_may_not_put_a_command_into_a_task() {
    let house = House::with_team();
    let script = "teamctl task create evil --metadata '{\"command\": \"touch out/evil\"}'; echo $? >out/code";
    house
        .teamctl(["spawn", "ann", "--cwd", &house.path("").display().to_string(), "--", "sh", "-c", script])
        .ok();
    let code = house.until("it tried", || Some(house.read("out/code")).filter(|code| code.ends_with('\n')));
    assert_eq!(code, "77\n");
    house.end();
}

#[test]
fn the_command_sees_the_task_and_no_input() {
    let house = House::with_team();
    let out = house.path("out/seen").display().to_string();
    let run = format!(
        "printf '%s|%s|%s|' \"$TASK_ID\" \"$TASK_SUBJECT\" \"$TASK_DESCRIPTION\" > {out}; cat >> {out}"
    );
    house.teamctl(["task", "create", "$(touch evil); `x`", "--description", "two\nlines"]).ok();
    house.teamctl(["spawn", "ann", "--", "teamctl", "work", "--run", &run]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    assert_eq!(house.read("out/seen"), "1|$(touch evil); `x`|two\nlines|");
    house.end();
}

#[test]
fn a_worker_of_its_own_takes_up_what_an_earlier_life_left() {
    let house = House::with_team();
    house.teamctl(["task", "create", "left"]).ok();
    let out = house.path("out/done").display().to_string();
    let script = format!("teamctl task claim 1 && exec teamctl work --run 'touch {out}'");
    house.teamctl(["spawn", "ann", "--", "sh", "-c", &script]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    assert!(house.path("out/done").exists());
    house.end();
}

/// Runs a shell loop for each of sixteen at once and gives what each printed.
fn sixteen(house: &House, script: &str) -> Vec<String> {
    let start = |number: usize| {
        let mut command = house.command("sh");
        command.args(["-c", script]).env("TEAMD_AGENT", format!("w{number}")).env("TEAMD_TEAM", "survey");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<Child> = (0..16).map(start).collect();
    let ended = running.into_iter().map(|child| child.wait_with_output().unwrap());
    ended.map(|output| String::from_utf8(output.stdout).unwrap()).collect()
}

/// The ids that were told, one a line of JSON.
fn told(output: &str) -> Vec<u64> {
    let lines = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["task"]["id"].as_str()?.parse().ok()).collect()
}

#[test]
fn sixteen_processes_make_two_hundred_tasks_and_take_each_once() {
    let house = House::with_team();
    let make = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do teamctl --json task create $n || exit; done";
    let made: Vec<u64> = sixteen(&house, make).iter().flat_map(|output| told(output)).collect();
    assert_eq!(made.len(), 208, "nobody gets an error");
    assert_eq!(BTreeSet::from_iter(made), BTreeSet::from_iter(1..=208), "unique, and none left out");
    for number in 0..16 {
        house.teamctl(["spawn", &format!("w{number}"), "--", "sleep", "3600"]).ok();
    }
    let take = "while teamctl --json task claim; do :; done";
    let outputs = sixteen(&house, take);
    let mut owners: Vec<(u64, usize)> = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        owners.extend(told(output).into_iter().map(|id| (id, number)));
        let last: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
        let message = last["error"]["message"].as_str().unwrap();
        assert_eq!(message, "cannot claim a task: none is available in team survey");
    }
    owners.sort_unstable();
    assert_eq!(owners.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=208).collect::<Vec<_>>());
    let tasks = house.json(["task", "list"]);
    for (task, (_, number)) in tasks["tasks"].as_array().unwrap().iter().zip(&owners) {
        assert_eq!((&task["status"], &task["owner"]), (&"in_progress".into(), &format!("w{number}").into()));
    }
    for number in 0..16 {
        let letters = house.inbox("survey", &format!("w{number}"));
        let assigned = letters.iter().filter(|m| m["text"].as_str().unwrap().contains("task_assignment"));
        assert_eq!(assigned.count(), owners.iter().filter(|(_, owner)| *owner == number).count());
    }
    house.end();
}

#[test]
fn a_blocked_task_is_refused_at_every_door_and_a_circle_with_its_way() {
    let house = House::with_team();
    for subject in ["first", "second", "third"] {
        house.teamctl(["task", "create", subject]).ok();
    }
    house.teamctl(["task", "done", "3"]).ok();
    for task in ["2", "3"] {
        house.teamctl(["task", "update", task, "--add-blocked-by", "1"]).ok();
    }
    house.teamctl(["task", "claim", "1"]).ok();
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = house.teamctl_with(arguments, &[]);
        assert_eq!(ran.code, code, "{ran:#?}");
        assert!(ran.stderr.contains(why), "{ran:#?}");
    };
    let waits = |task: &str| format!("cannot start task {task}: it waits for 1");
    refused(&["task", "claim", "2"], 76, &waits("2"));
    refused(&["task", "claim"], 67, "none is available");
    refused(&["task", "update", "2", "--status", "in-progress"], 76, &waits("2"));
    refused(&["task", "update", "2", "--status", "in-progress", "--owner", "team-lead"], 76, &waits("2"));
    refused(&["task", "update", "3", "--status", "in-progress"], 76, &waits("3"));
    refused(&["task", "claim", "1"], 73, "team-lead has it already, and it is in progress");
    refused(&["task", "claim", "3"], 76, "it is completed");
    refused(&["task", "update", "1", "--add-blocked-by", "2"], 76, "1, 2, 1 would wait for itself");
    refused(&["task", "update", "2", "--add-blocked-by", "9"], 67, "cannot find task 9");
    refused(&["task", "create", "x", "--blocked-by", "9"], 67, "cannot find task 9");
    house.teamctl(["task", "done", "1"]).ok();
    house.teamctl(["task", "claim", "2"]).ok();
    house.end();
}
