//! The event log: every change of a team, once, also what happened while no daemon looked.

use harness::House;
use serde_json::Value;

fn words(house: &House, task: &str) -> Vec<String> {
    let about = house.events().into_iter().filter(|event| event["task"] == task);
    about.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tasks_way_is_told_in_order_across_a_dead_daemon() {
    let house = House::with_team();
    house.teamctl(["task", "create", "count"]).ok();
    house.until("it is told", || (words(&house, "1") == ["task_created"]).then_some(()));
    house.kill_9(house.daemon());
    house.teamctl(["task", "claim", "1"]).ok();
    house.teamctl(["task", "done", "1"]).ok();
    house.teamctl(["task", "create", "report"]).ok();
    house.teamctl(["send", "team-lead", "while nobody looked"]).ok();
    house.start_daemon();
    let all = ["task_created", "task_started", "task_completed"];
    house.until("the rest is told", || (words(&house, "1") == all).then_some(()));
    house.until("the new one too", || (words(&house, "2") == ["task_created"]).then_some(()));
    let stored = || house.events().into_iter().filter(|event| event["event"] == "message_stored").count();
    let before = house.until("so is the mail", || Some(stored()).filter(|stored| *stored > 0));
    // A third daemon has nothing to add.
    house.kill_9(house.daemon());
    house.start_daemon();
    house.teamctl(["task", "create", "last"]).ok();
    house.until("the last is told", || (words(&house, "3") == ["task_created"]).then_some(()));
    assert_eq!(words(&house, "1"), all);
    assert_eq!(stored(), before);
    house.end();
}

#[test]
fn mail_is_told_when_it_is_stored_and_when_it_is_read() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house.teamctl(["send", "ann", "hello", "--summary", "a greeting"]).ok();
    let told = house.until("it is told", || {
        house.events().into_iter().find(|event| event["event"] == "message_stored" && event["agent"] == "ann")
    });
    assert_eq!(
        (&told["summary"], &told["kind"], &told["from"]),
        (&"a greeting".into(), &"text".into(), &"team-lead".into())
    );
    assert!(!told.to_string().contains("hello"), "the text stays in the inbox");
    house.teamctl_with(&["inbox", "--mark-read"], &[("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")]).ok();
    house.until("the reading is told", || {
        house.events().into_iter().find(|event| event["event"] == "message_read" && event["unread"] == 0)
    });
    house.end();
}

/// The lead holds the first one, so that all wait for it.
#[test]
fn a_completed_blocker_wakes_one_of_many_idle_agents() {
    let house = House::with_team();
    let names = ["ann", "bob", "cat", "dan"];
    house.teamctl(["task", "create", "first"]).ok();
    let first = house.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    house.teamctl(["task", "claim", &first]).ok();
    let command = r#"{"command": "true"}"#;
    house.teamctl(["task", "create", "second", "--blocked-by", &first, "--metadata", command]).ok();
    for name in names {
        house.teamctl(["spawn", name, "--agent", "worker", "--backend", "in-process"]).ok();
    }
    let idle = |name: &str| house.member(name).is_some_and(|member| member["activity"] == "idle");
    house.until("all are idle", || names.into_iter().all(idle).then_some(()));
    house.teamctl(["task", "done", &first]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    house.until("the one that had it is idle again", || {
        let log = house.events();
        let active: Vec<&Value> = log.iter().filter(|event| event["event"] == "member_active").collect();
        let after = log.iter().rposition(|event| event["event"] == "member_idle")?;
        let begun = log.iter().rposition(|event| event["event"] == "member_active")?;
        (active.len() == 1 && after > begun).then_some(())
    });
    house.end();
}
