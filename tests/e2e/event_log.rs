//! The event log has each change of a team once, also the changes that happened while no daemon
//! ran.

use harness::TestEnv;
use serde_json::Value;

fn task_event_kinds(env: &TestEnv, task: &str) -> Vec<String> {
    let events = env.events().into_iter().filter(|event| event["task"] == task);
    events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn task_events_are_in_order_across_daemons() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "count"]).expect_success();
    env.wait_until("the new task is logged", || {
        (task_event_kinds(&env, "1") == ["task_created"]).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.teamctl(["task", "claim", "1"]).expect_success();
    env.teamctl(["task", "done", "1"]).expect_success();
    env.teamctl(["task", "create", "report"]).expect_success();
    env.teamctl(["send", "team-lead", "while nobody looked"]).expect_success();
    env.start_daemon();
    let task_1_events = ["task_created", "task_started", "task_completed"];
    env.wait_until("the claim and the end of task 1 are logged", || {
        (task_event_kinds(&env, "1") == task_1_events).then_some(())
    });
    env.wait_until("task 2 is logged", || (task_event_kinds(&env, "2") == ["task_created"]).then_some(()));
    let count_stored = || env.events().into_iter().filter(|event| event["event"] == "message_stored").count();
    let stored_count =
        env.wait_until("the message is logged", || Some(count_stored()).filter(|count| *count > 0));
    // A third daemon does not log these events again.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["task", "create", "last"]).expect_success();
    env.wait_until("task 3 is logged", || (task_event_kinds(&env, "3") == ["task_created"]).then_some(()));
    assert_eq!(task_event_kinds(&env, "1"), task_1_events);
    assert_eq!(count_stored(), stored_count);
    env.shut_down();
}

#[test]
fn stored_and_read_messages_are_logged() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["send", "ann", "hello", "--summary", "a greeting"]).expect_success();
    let logged_event = env.wait_until("the message is logged", || {
        env.events().into_iter().find(|event| event["event"] == "message_stored" && event["member"] == "ann")
    });
    assert_eq!(
        (&logged_event["summary"], &logged_event["kind"], &logged_event["from"]),
        (&"a greeting".into(), &"text".into(), &"team-lead".into())
    );
    assert!(!logged_event.to_string().contains("hello"), "the event does not have the text of the message");
    env.teamctl_with(&["inbox", "--mark-read"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")])
        .expect_success();
    env.wait_until("the read message is logged", || {
        env.events().into_iter().find(|event| event["event"] == "message_read" && event["unread"] == 0)
    });
    env.shut_down();
}

/// The lead has claimed the first task, so that all agents wait for its end.
#[test]
fn completed_blocker_wakes_one_idle_agent() {
    let env = TestEnv::with_team();
    let names = ["ann", "bob", "cat", "dan"];
    env.teamctl(["task", "create", "first"]).expect_success();
    let first_task = env.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    env.teamctl(["task", "claim", &first_task]).expect_success();
    let command = r#"{"command": "true"}"#;
    env.teamctl(["task", "create", "second", "--blocked-by", &first_task, "--metadata", command])
        .expect_success();
    for name in names {
        env.teamctl(["spawn", name, "--profile", "worker", "--backend", "in-process"]).expect_success();
    }
    let is_idle = |name: &str| env.member(name).is_some_and(|member| member["activity"] == "idle");
    env.wait_until("all agents are idle", || names.into_iter().all(is_idle).then_some(()));
    env.teamctl(["task", "done", &first_task]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.wait_until("the agent with the task is idle again", || {
        let log = env.events();
        let active_events: Vec<&Value> =
            log.iter().filter(|event| event["event"] == "member_active").collect();
        let last_idle = log.iter().rposition(|event| event["event"] == "member_idle")?;
        let last_active = log.iter().rposition(|event| event["event"] == "member_active")?;
        (active_events.len() == 1 && last_idle > last_active).then_some(())
    });
    env.shut_down();
}
