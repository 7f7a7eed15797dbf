//! Another program rewrites an inbox without a message that is stored and not read: it comes back.

use harness::TestEnv;
use serde_json::Value;

/// Truncates and writes in place, without a lock and without having read: all that is there is dropped.
fn truncate_inbox(house: &TestEnv, inbox: &str) {
    house.write_file(&format!("root/teams/survey/inboxes/{inbox}.json"), "[]");
}

fn message_texts(house: &TestEnv, inbox: &str) -> Vec<String> {
    house.inbox("survey", inbox).iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn restore_events(house: &TestEnv) -> Vec<Value> {
    house.events().into_iter().filter(|event| event["event"] == "message_restored").collect()
}

/// Waits until these are there, and the log has told of `times` that were put back.
fn wait_for_restored(house: &TestEnv, inbox: &str, expected: &[&str], times: usize) {
    house.wait_until("it is there again, and told", || {
        (message_texts(house, inbox) == expected && restore_events(house).len() == times).then_some(())
    });
}

#[test]
fn dropped_message_is_restored_once() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    house.teamctl(["send", "ann", "one", "--summary", "s"]).expect_success();
    truncate_inbox(&house, "ann");
    wait_for_restored(&house, "ann", &["one"], 1);
    let told = &restore_events(&house)[0];
    assert_eq!(
        (&told["member"], &told["from"], &told["summary"]),
        (&"ann".into(), &"team-lead".into(), &"s".into())
    );

    house.kill_process(house.daemon_pid());
    for text in ["to ann", "and to ann"] {
        house.teamctl(["send", "ann", text]).expect_success();
    }
    house
        .teamctl_with(
            &["send", "team-lead", "to the lead"],
            &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")],
        )
        .expect_success();
    truncate_inbox(&house, "ann");
    truncate_inbox(&house, "team-lead");
    house.start_daemon();
    wait_for_restored(&house, "team-lead", &["to the lead"], 4);
    wait_for_restored(&house, "ann", &["to ann", "and to ann"], 4);
    let doctor = house.teamctl(["doctor"]).expect_success();
    assert!(
        doctor.contains("warn  messages: survey: 3 message(s) were put back into the inbox of ann"),
        "{doctor}"
    );
    house.shut_down();
}

#[test]
fn read_or_foreign_messages_are_not_restored() {
    let house = TestEnv::with_team();
    let profile =
        "delivery = 'native'\nprogram = '{}'\nargs = ['stay']\n".replace("{}", &house.scripted_agent_path());
    house.write_profile("old", &profile);
    house.teamctl(["spawn", "nat", "--profile", "old"]).expect_success();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    house.teamctl(["send", "nat", "had"]).expect_success();
    house.teamctl(["send", "ann", "read"]).expect_success();
    let me = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    house.teamctl_with(&["inbox", "--mark-read"], &me).expect_success();
    house.teamctl(["send", "ann", "unread"]).expect_success();
    ["nat", "ann"].iter().for_each(|inbox| truncate_inbox(&house, inbox));
    wait_for_restored(&house, "ann", &["unread"], 1);
    // And a daemon that looks at all of it anew.
    house.kill_process(house.daemon_pid());
    house.teamctl(["send", "ann", "more"]).expect_success();
    truncate_inbox(&house, "ann");
    house.start_daemon();
    wait_for_restored(&house, "ann", &["more"], 2);
    assert_eq!(message_texts(&house, "nat"), [""; 0]);
    house.shut_down();
}
