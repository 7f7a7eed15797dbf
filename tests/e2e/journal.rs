//! Another program rewrites an inbox without a message that is stored and not read: it comes back.

use harness::House;
use serde_json::Value;

/// Truncates and writes in place, without a lock and without having read: all that is there is dropped.
fn drop_all(house: &House, inbox: &str) {
    house.put(&format!("root/teams/survey/inboxes/{inbox}.json"), "[]");
}

fn texts(house: &House, inbox: &str) -> Vec<String> {
    house.inbox("survey", inbox).iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn put_back(house: &House) -> Vec<Value> {
    house.events().into_iter().filter(|event| event["event"] == "message_put_back").collect()
}

/// Waits until these are there, and the log has told of `times` that were put back.
fn comes_back(house: &House, inbox: &str, expected: &[&str], times: usize) {
    house.until("it is there again, and told", || {
        (texts(house, inbox) == expected && put_back(house).len() == times).then_some(())
    });
}

#[test]
fn a_message_that_another_program_dropped_comes_back_once_with_a_daemon_and_without() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.teamctl(["send", "ann", "one", "--summary", "s"]).ok();
    drop_all(&house, "ann");
    comes_back(&house, "ann", &["one"], 1);
    let told = &put_back(&house)[0];
    assert_eq!(
        (&told["agent"], &told["from"], &told["summary"]),
        (&"ann".into(), &"team-lead".into(), &"s".into())
    );

    house.kill_9(house.daemon());
    for text in ["to ann", "and to ann"] {
        house.teamctl(["send", "ann", text]).ok();
    }
    house
        .teamctl_with(
            &["send", "team-lead", "to the lead"],
            &[("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")],
        )
        .ok();
    drop_all(&house, "ann");
    drop_all(&house, "team-lead");
    house.start_daemon();
    comes_back(&house, "team-lead", &["to the lead"], 4);
    comes_back(&house, "ann", &["to ann", "and to ann"], 4);
    let doctor = house.teamctl(["doctor"]).ok();
    assert!(
        doctor.contains("warn  mail: survey: 3 message(s) were put back into the inbox of ann"),
        "{doctor}"
    );
    house.end();
}

#[test]
fn what_was_read_or_lies_in_the_inbox_of_a_program_of_that_kind_stays_gone() {
    let house = House::with_team();
    let profile = "feed = 'native'\nprogram = '{}'\nargs = ['stay']\n".replace("{}", &house.agent());
    house.profile("old", &profile);
    house.teamctl(["spawn", "nat", "--agent", "old"]).ok();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.teamctl(["send", "nat", "had"]).ok();
    house.teamctl(["send", "ann", "read"]).ok();
    let me = [("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")];
    house.teamctl_with(&["inbox", "--mark-read"], &me).ok();
    house.teamctl(["send", "ann", "unread"]).ok();
    ["nat", "ann"].iter().for_each(|inbox| drop_all(&house, inbox));
    comes_back(&house, "ann", &["unread"], 1);
    // And a daemon that looks at all of it anew.
    house.kill_9(house.daemon());
    house.teamctl(["send", "ann", "more"]).ok();
    drop_all(&house, "ann");
    house.start_daemon();
    comes_back(&house, "ann", &["more"], 2);
    assert_eq!(texts(&house, "nat"), [""; 0]);
    house.end();
}
