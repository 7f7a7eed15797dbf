//! Workers work.

use harness::House;

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
    let lead = house.inbox("survey", "team-lead");
    let done =
        lead.iter().filter(|m| m["summary"].as_str().is_some_and(|s| s.starts_with("task done"))).count();
    assert_eq!(done, 4, "{lead:#?}");
    house.teamctl(["shutdown", "--all"]).ok();
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
            .any(|m| m["text"].as_str().is_some_and(|t| t.contains("Task 2 failed (exit 7)")))
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
