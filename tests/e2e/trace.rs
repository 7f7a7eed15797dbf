//! `trace`: where a message is, from the one who sent it to what was said to it.

use crate::why::Stopped;
use harness::House;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn stays(house: &House, name: &str) {
    house.teamctl(["spawn", name, "--", &house.agent(), "stay"]).ok();
}

fn send(house: &House, text: &str) -> String {
    let sent = house.json(["send", "ann", text, "--summary", "to do"]);
    sent["message_id"].as_str().unwrap().to_owned()
}

/// The only copy of that message.
fn copy(house: &House, message: &str) -> Value {
    let traced = house.json(["trace", message]);
    assert_eq!(traced["copies"].as_array().unwrap().len(), 1, "{traced}");
    traced["copies"][0].clone()
}

#[test]
fn a_message_is_followed_from_its_sender_to_the_answer() {
    let house = House::with_team();
    house.profile("reads", "feed = 'turn'\nprogram = 'cat'\n");
    house.teamctl(["spawn", "ann", "--agent", "reads"]).ok();
    house.until("ann is idle", || (house.member("ann")?["activity"] == "idle").then_some(()));
    let id = send(&house, "hello");
    let done = house
        // The log tells of its turn, and of the look that found it read, a moment after the answer is in the file.
        .until("it was answered", || {
            Some(copy(&house, "last")).filter(|copy| {
                copy["answered"].is_object() && copy["fed"].is_u64() && copy["read_at"].is_u64()
            })
        });
    assert_eq!(
        (&done["to"], &done["from"], &done["read"]),
        (&json!("ann"), &json!("team-lead"), &json!(true))
    );
    let times = ["sent", "stored", "fed", "read_at"]
        .map(|key| done[key].as_u64().unwrap_or_else(|| panic!("{key}: {done}")));
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1] + 1_000), "{done}");
    assert_eq!(done["answered"]["kind"], "idle_notification");
    let listed = house.json(["inbox", "ann"]);
    assert_eq!(listed["messages"][0]["message_id"], id.as_str());
    let told = house.teamctl(["trace", &id[..12]]).ok();
    assert!(told.contains("with the turn on message from team-lead") && told.contains(": to do"), "{told}");
    assert_eq!(house.json(["trace", &id[..6]])["message_id"], id.as_str());
    house.end();
}

#[test]
fn what_is_missing_is_told_with_its_cause() {
    let house = House::with_team();
    stays(&house, "ann");
    send(&house, "hello");
    let waits = house.until("its cause is told", || {
        Some(copy(&house, "last")).filter(|copy| copy["waits"]["cause"] == "unfed")
    });
    assert_eq!((&waits["read"], &waits["fed"], &waits["index"]), (&json!(false), &Value::Null, &json!(0)));
    let told = house.teamctl(["trace", "last"]).ok();
    assert!(told.contains("read      not yet") && told.contains("nothing has given it to it"), "{told}");
    house.end();
}

#[test]
fn a_message_to_all_is_followed_in_every_inbox() {
    let house = House::with_team();
    stays(&house, "ann");
    stays(&house, "bob");
    let sent = house.json(["broadcast", "frozen"]);
    let traced = house.json(["trace", "last"]);
    assert_eq!(traced["message_id"], sent["message_id"]);
    let to: Vec<&str> =
        traced["copies"].as_array().unwrap().iter().map(|copy| copy["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["ann", "bob"]);
    house.end();
}

/// A silent daemon is waited for five seconds.
#[test]
fn whatever_keeps_a_message_to_all_is_looked_for_once() {
    let house = House::empty();
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    ["ann", "bob", "cat", "dan", "eve"].iter().for_each(|name| stays(&house, name));
    house.teamctl(["broadcast", "frozen"]).ok();
    let stopped = Stopped::new(teamd.id());
    let began = Instant::now();
    let traced = house.json(["trace", "last"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let causes = traced["copies"].as_array().unwrap().iter().map(|copy| &copy["waits"]["cause"]);
    assert_eq!(causes.collect::<Vec<_>>(), [&json!("daemon_silent"); 5], "{traced}");
    drop(stopped);
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn what_another_program_took_out_is_told_as_gone() {
    let house = House::with_team();
    stays(&house, "ann");
    house.kill_9(house.daemon());
    let id = send(&house, "hello");
    house.put("root/teams/survey/inboxes/ann.json", "[]");
    let gone = copy(&house, &id);
    assert_eq!((&gone["index"], &gone["waits"]), (&Value::Null, &Value::Null));
    assert_eq!((&gone["read"], &gone["read_at"]), (&json!(false), &Value::Null));
    let told = house.teamctl(["trace", &id]).ok();
    assert!(
        told.contains("another program took it out") && told.contains("read      not as far as"),
        "{told}"
    );
    house.start_daemon();
    house.until("it is back", || (copy(&house, &id)["index"] == 0).then_some(()));
    house.end();
}

#[test]
fn who_asks_for_none_or_for_several_is_told() {
    let house = House::with_team();
    stays(&house, "ann");
    assert!(house.teamctl(["trace", "last"]).fails(67).contains("you have sent none"));
    for n in 0..20 {
        send(&house, &n.to_string());
    }
    house.teamctl(["trace", "zz"]).fails(67);
    house.teamctl(["trace", ""]).fails(67);
    let digits = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];
    let several = digits.map(|digit| house.teamctl(["trace", digit])).into_iter().find(|ran| ran.code == 64);
    assert!(several.unwrap().stderr.contains("begin with"), "of twenty some begin alike");
    let teammate = house.teamctl_with(&["trace", "last"], &[("TEAMD_AGENT", "ann")]);
    teammate.fails(77);
    house.end();
}
