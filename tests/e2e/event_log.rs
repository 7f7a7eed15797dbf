//! The event log: every change of a team, once, also what happened while no daemon looked.

use harness::TestEnv;
use serde_json::Value;

fn task_event_kinds(env: &TestEnv, task: &str) -> Vec<String> {
    let about = env.events().into_iter().filter(|event| event["task"] == task);
    about.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn task_events_are_in_order_across_daemons() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "count"]).expect_success();
    env.wait_until("it is told", || (task_event_kinds(&env, "1") == ["task_created"]).then_some(()));
    env.kill_process(env.daemon_pid());
    env.teamctl(["task", "claim", "1"]).expect_success();
    env.teamctl(["task", "done", "1"]).expect_success();
    env.teamctl(["task", "create", "report"]).expect_success();
    env.teamctl(["send", "team-lead", "while nobody looked"]).expect_success();
    env.start_daemon();
    let all = ["task_created", "task_started", "task_completed"];
    env.wait_until("the rest is told", || (task_event_kinds(&env, "1") == all).then_some(()));
    env.wait_until("the new one too", || (task_event_kinds(&env, "2") == ["task_created"]).then_some(()));
    let stored = || env.events().into_iter().filter(|event| event["event"] == "message_stored").count();
    let before = env.wait_until("so is the mail", || Some(stored()).filter(|stored| *stored > 0));
    // A third daemon has nothing to add.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["task", "create", "last"]).expect_success();
    env.wait_until("the last is told", || (task_event_kinds(&env, "3") == ["task_created"]).then_some(()));
    assert_eq!(task_event_kinds(&env, "1"), all);
    assert_eq!(stored(), before);
    env.shut_down();
}

#[test]
fn stored_and_read_messages_are_logged() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["send", "ann", "hello", "--summary", "a greeting"]).expect_success();
    let told = env.wait_until("it is told", || {
        env.events().into_iter().find(|event| event["event"] == "message_stored" && event["member"] == "ann")
    });
    assert_eq!(
        (&told["summary"], &told["kind"], &told["from"]),
        (&"a greeting".into(), &"text".into(), &"team-lead".into())
    );
    assert!(!told.to_string().contains("hello"), "the text stays in the inbox");
    env.teamctl_with(&["inbox", "--mark-read"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")])
        .expect_success();
    env.wait_until("the reading is told", || {
        env.events().into_iter().find(|event| event["event"] == "message_read" && event["unread"] == 0)
    });
    env.shut_down();
}

/// The lead holds the first one, so that all wait for it.
#[test]
fn completed_blocker_wakes_one_idle_agent() {
    let env = TestEnv::with_team();
    let names = ["ann", "bob", "cat", "dan"];
    env.teamctl(["task", "create", "first"]).expect_success();
    let first = env.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    env.teamctl(["task", "claim", &first]).expect_success();
    let command = r#"{"command": "true"}"#;
    env.teamctl(["task", "create", "second", "--blocked-by", &first, "--metadata", command]).expect_success();
    for name in names {
        env.teamctl(["spawn", name, "--profile", "worker", "--backend", "in-process"]).expect_success();
    }
    let idle = |name: &str| env.member(name).is_some_and(|member| member["activity"] == "idle");
    env.wait_until("all are idle", || names.into_iter().all(idle).then_some(()));
    env.teamctl(["task", "done", &first]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.wait_until("the one that had it is idle again", || {
        let log = env.events();
        let active: Vec<&Value> = log.iter().filter(|event| event["event"] == "member_active").collect();
        let after = log.iter().rposition(|event| event["event"] == "member_idle")?;
        let begun = log.iter().rposition(|event| event["event"] == "member_active")?;
        (active.len() == 1 && after > begun).then_some(())
    });
    env.shut_down();
}
