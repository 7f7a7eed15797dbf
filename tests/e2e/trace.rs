//! `trace`: where a message is, from the one who sent it to what was said to it.

use crate::why::PausedProcess;
use harness::TestEnv;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn spawn_idle_agent(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
}

fn send(env: &TestEnv, text: &str) -> String {
    let sent = env.json(["send", "ann", text, "--summary", "to do"]);
    sent["message_id"].as_str().unwrap().to_owned()
}

/// The only copy of that message.
fn single_copy(env: &TestEnv, message: &str) -> Value {
    let traced = env.json(["trace", message]);
    assert_eq!(traced["copies"].as_array().unwrap().len(), 1, "{traced}");
    traced["copies"][0].clone()
}

#[test]
fn message_is_traced_to_its_reply() {
    let env = TestEnv::with_team();
    env.write_profile("reads", "delivery = 'turn'\nprogram = 'cat'\n");
    env.teamctl(["spawn", "ann", "--profile", "reads"]).expect_success();
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    let id = send(&env, "hello");
    let done = env
        // The log tells of its turn, and of the look that found it read, a moment after the answer is in the file.
        .wait_until("it was answered", || {
            Some(single_copy(&env, "last")).filter(|copy| {
                copy["reply"].is_object() && copy["delivered"].is_u64() && copy["read_at"].is_u64()
            })
        });
    assert_eq!(
        (&done["to"], &done["from"], &done["read"]),
        (&json!("ann"), &json!("team-lead"), &json!(true))
    );
    let times = ["sent", "stored", "delivered", "read_at"]
        .map(|key| done[key].as_u64().unwrap_or_else(|| panic!("{key}: {done}")));
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1] + 1_000), "{done}");
    assert_eq!(done["reply"]["kind"], "idle_notification");
    let listed = env.json(["inbox", "ann"]);
    assert_eq!(listed["messages"][0]["message_id"], id.as_str());
    let told = env.teamctl(["trace", &id[..12]]).expect_success();
    assert!(told.contains("with the turn on message from team-lead") && told.contains(": to do"), "{told}");
    assert_eq!(env.json(["trace", &id[..6]])["message_id"], id.as_str());
    env.shut_down();
}

#[test]
fn undelivered_message_names_its_cause() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    send(&env, "hello");
    let waits = env.wait_until("its cause is told", || {
        Some(single_copy(&env, "last")).filter(|copy| copy["blocked_by"]["cause"] == "undelivered")
    });
    assert_eq!(
        (&waits["read"], &waits["delivered"], &waits["index"]),
        (&json!(false), &Value::Null, &json!(0))
    );
    let told = env.teamctl(["trace", "last"]).expect_success();
    assert!(told.contains("read      not yet") && told.contains("which teamd has not delivered"), "{told}");
    env.shut_down();
}

#[test]
fn broadcast_is_traced_in_every_inbox() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    spawn_idle_agent(&env, "bob");
    let sent = env.json(["broadcast", "frozen"]);
    let traced = env.json(["trace", "last"]);
    assert_eq!(traced["message_id"], sent["message_id"]);
    let to: Vec<&str> =
        traced["copies"].as_array().unwrap().iter().map(|copy| copy["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["ann", "bob"]);
    env.shut_down();
}

/// A silent daemon is waited for five seconds.
#[test]
fn cause_of_an_undelivered_broadcast_is_diagnosed_once() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    ["ann", "bob", "cat", "dan", "eve"].iter().for_each(|name| spawn_idle_agent(&env, name));
    env.teamctl(["broadcast", "frozen"]).expect_success();
    let stopped = PausedProcess::new(teamd.id());
    let began = Instant::now();
    let traced = env.json(["trace", "last"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let causes = traced["copies"].as_array().unwrap().iter().map(|copy| &copy["blocked_by"]["cause"]);
    assert_eq!(causes.collect::<Vec<_>>(), [&json!("daemon_unresponsive"); 5], "{traced}");
    drop(stopped);
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn removed_message_is_reported() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    env.kill_process(env.daemon_pid());
    let id = send(&env, "hello");
    env.write_file("root/teams/survey/inboxes/ann.json", "[]");
    let gone = single_copy(&env, &id);
    assert_eq!((&gone["index"], &gone["blocked_by"]), (&Value::Null, &Value::Null));
    assert_eq!((&gone["read"], &gone["read_at"]), (&json!(false), &Value::Null));
    let told = env.teamctl(["trace", &id]).expect_success();
    assert!(
        told.contains("another program took it out") && told.contains("read      not as far as"),
        "{told}"
    );
    env.start_daemon();
    env.wait_until("it is back", || (single_copy(&env, &id)["index"] == 0).then_some(()));
    env.shut_down();
}

#[test]
fn missing_or_ambiguous_message_is_an_error() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    assert!(env.teamctl(["trace", "last"]).expect_failure(67).contains("you have sent none"));
    for n in 0..20 {
        send(&env, &n.to_string());
    }
    env.teamctl(["trace", "zz"]).expect_failure(67);
    env.teamctl(["trace", ""]).expect_failure(67);
    let digits = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];
    let several = digits.map(|digit| env.teamctl(["trace", digit])).into_iter().find(|ran| ran.code == 64);
    assert!(several.unwrap().stderr.contains("begin with"), "of twenty some begin alike");
    let teammate = env.teamctl_with(&["trace", "last"], &[("TEAMD_MEMBER", "ann")]);
    teammate.expect_failure(77);
    env.shut_down();
}
