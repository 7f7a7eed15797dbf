//! Checks `teamctl trace`, which shows where a message is: stored, delivered, read or replied to.

use crate::why::PausedProcess;
use harness::TestEnv;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn spawn_idle_agent(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
}

fn send(env: &TestEnv, text: &str) -> String {
    let reply = env.json(["send", "ann", text, "--summary", "to do"]);
    reply["message_id"].as_str().unwrap().to_owned()
}

/// The only copy of the message in the JSON output of `trace`.
fn single_copy(env: &TestEnv, message: &str) -> Value {
    let trace = env.json(["trace", message]);
    assert_eq!(trace["copies"].as_array().unwrap().len(), 1, "{trace}");
    trace["copies"][0].clone()
}

#[test]
fn message_is_traced_to_its_reply() {
    let env = TestEnv::with_team();
    env.write_profile("reads", "delivery = 'turn'\nprogram = 'cat'\n");
    env.teamctl(["spawn", "ann", "--profile", "reads"]).expect_success();
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    let id = send(&env, "hello");
    let copy = env
        // The event log has the turn and the read message shortly after the reply is in the file.
        .wait_until("the copy is delivered, read and replied to", || {
            Some(single_copy(&env, "last")).filter(|copy| {
                copy["reply"].is_object() && copy["delivered"].is_u64() && copy["read_at"].is_u64()
            })
        });
    assert_eq!(
        (&copy["to"], &copy["from"], &copy["read"]),
        (&json!("ann"), &json!("team-lead"), &json!(true))
    );
    let times = ["sent", "stored", "delivered", "read_at"]
        .map(|key| copy[key].as_u64().unwrap_or_else(|| panic!("{key}: {copy}")));
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1] + 1_000), "{copy}");
    assert_eq!(copy["reply"]["kind"], "idle_notification");
    let inbox = env.json(["inbox", "ann"]);
    assert_eq!(inbox["messages"][0]["message_id"], id.as_str());
    let output = env.teamctl(["trace", &id[..12]]).expect_success();
    assert!(
        output.contains("with the turn on message from team-lead") && output.contains(": to do"),
        "{output}"
    );
    assert_eq!(env.json(["trace", &id[..6]])["message_id"], id.as_str());
    env.shut_down();
}

#[test]
fn undelivered_message_names_its_cause() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    send(&env, "hello");
    let copy = env.wait_until("the copy names why it is not delivered", || {
        Some(single_copy(&env, "last")).filter(|copy| copy["blocked_by"]["cause"] == "undelivered")
    });
    assert_eq!((&copy["read"], &copy["delivered"], &copy["index"]), (&json!(false), &Value::Null, &json!(0)));
    let output = env.teamctl(["trace", "last"]).expect_success();
    assert!(
        output.contains("read      not yet") && output.contains("which teamd has not delivered"),
        "{output}"
    );
    env.shut_down();
}

#[test]
fn broadcast_is_traced_in_every_inbox() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env, "ann");
    spawn_idle_agent(&env, "bob");
    let reply = env.json(["broadcast", "frozen"]);
    let trace = env.json(["trace", "last"]);
    assert_eq!(trace["message_id"], reply["message_id"]);
    let recipients: Vec<&str> =
        trace["copies"].as_array().unwrap().iter().map(|copy| copy["to"].as_str().unwrap()).collect();
    assert_eq!(recipients, ["ann", "bob"]);
    env.shut_down();
}

/// `trace` waits five seconds for a daemon that does not answer. With five copies, it waits only
/// once.
#[test]
fn cause_of_an_undelivered_broadcast_is_diagnosed_once() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    ["ann", "bob", "cat", "dan", "eve"].iter().for_each(|name| spawn_idle_agent(&env, name));
    env.teamctl(["broadcast", "frozen"]).expect_success();
    let paused_daemon = PausedProcess::new(teamd.id());
    let start = Instant::now();
    let trace = env.json(["trace", "last"]);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    let causes = trace["copies"].as_array().unwrap().iter().map(|copy| &copy["blocked_by"]["cause"]);
    assert_eq!(causes.collect::<Vec<_>>(), [&json!("daemon_unresponsive"); 5], "{trace}");
    drop(paused_daemon);
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
    let copy = single_copy(&env, &id);
    assert_eq!((&copy["index"], &copy["blocked_by"]), (&Value::Null, &Value::Null));
    assert_eq!((&copy["read"], &copy["read_at"]), (&json!(false), &Value::Null));
    let output = env.teamctl(["trace", &id]).expect_success();
    assert!(
        output.contains("another program took it out") && output.contains("read      not as far as"),
        "{output}"
    );
    env.start_daemon();
    env.wait_until("the message is restored", || (single_copy(&env, &id)["index"] == 0).then_some(()));
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
    let ambiguous =
        digits.map(|digit| env.teamctl(["trace", digit])).into_iter().find(|output| output.code == 64);
    assert!(ambiguous.unwrap().stderr.contains("begin with"), "some of the 20 ids begin with the same digit");
    let output = env.teamctl_with(&["trace", "last"], &[("TEAMD_MEMBER", "ann")]);
    output.expect_failure(77);
    env.shut_down();
}
