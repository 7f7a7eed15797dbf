//! Checks the journal of sent messages: when another program rewrites an inbox without an unread
//! message, the daemon restores the message.

use harness::TestEnv;
use serde_json::Value;

/// Replaces the content of an inbox by an empty list, in place and without a lock.
fn truncate_inbox(env: &TestEnv, inbox: &str) {
    env.write_file(&format!("root/teams/survey/inboxes/{inbox}.json"), "[]");
}

fn message_texts(env: &TestEnv, inbox: &str) -> Vec<String> {
    env.inbox("survey", inbox).iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn restore_events(env: &TestEnv) -> Vec<Value> {
    env.events().into_iter().filter(|event| event["event"] == "message_restored").collect()
}

/// Waits until the inbox has exactly the messages `expected`, and the event log has `event_count`
/// restored messages in total.
fn wait_for_restored(env: &TestEnv, inbox: &str, expected: &[&str], event_count: usize) {
    env.wait_until(&format!("the messages of {inbox} are restored and logged"), || {
        (message_texts(env, inbox) == expected && restore_events(env).len() == event_count).then_some(())
    });
}

#[test]
fn dropped_message_is_restored_once() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.teamctl(["send", "ann", "one", "--summary", "s"]).expect_success();
    truncate_inbox(&env, "ann");
    wait_for_restored(&env, "ann", &["one"], 1);
    let event = &restore_events(&env)[0];
    assert_eq!(
        (&event["member"], &event["from"], &event["summary"]),
        (&"ann".into(), &"team-lead".into(), &"s".into())
    );

    env.kill_process(env.daemon_pid());
    for text in ["to ann", "and to ann"] {
        env.teamctl(["send", "ann", text]).expect_success();
    }
    env.teamctl_with(
        &["send", "team-lead", "to the lead"],
        &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")],
    )
    .expect_success();
    truncate_inbox(&env, "ann");
    truncate_inbox(&env, "team-lead");
    env.start_daemon();
    wait_for_restored(&env, "team-lead", &["to the lead"], 4);
    wait_for_restored(&env, "ann", &["to ann", "and to ann"], 4);
    let doctor = env.teamctl(["doctor"]).expect_success();
    assert!(
        doctor.contains("warn  messages: survey: 3 message(s) were put back into the inbox of ann"),
        "{doctor}"
    );
    env.shut_down();
}

#[test]
fn read_or_foreign_messages_are_not_restored() {
    let env = TestEnv::with_team();
    let profile =
        "delivery = 'native'\nprogram = '{}'\nargs = ['stay']\n".replace("{}", &env.scripted_agent_path());
    env.write_profile("old", &profile);
    env.teamctl(["spawn", "nat", "--profile", "old"]).expect_success();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.teamctl(["send", "nat", "had"]).expect_success();
    env.teamctl(["send", "ann", "read"]).expect_success();
    let as_ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    env.teamctl_with(&["inbox", "--mark-read"], &as_ann).expect_success();
    env.teamctl(["send", "ann", "unread"]).expect_success();
    ["nat", "ann"].iter().for_each(|inbox| truncate_inbox(&env, inbox));
    wait_for_restored(&env, "ann", &["unread"], 1);
    // A new daemon scans all inboxes.
    env.kill_process(env.daemon_pid());
    env.teamctl(["send", "ann", "more"]).expect_success();
    truncate_inbox(&env, "ann");
    env.start_daemon();
    wait_for_restored(&env, "ann", &["more"], 2);
    assert_eq!(message_texts(&env, "nat"), [""; 0]);
    env.shut_down();
}
