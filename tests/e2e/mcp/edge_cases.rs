//! What the tools must not get wrong: one task for two, one message for another, long texts, a killed server.

use super::{RawMcpClient, call};
use harness::{TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

#[test]
fn concurrent_claims_have_one_owner() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_success();
    let open = |name| RawMcpClient::start(&env, &[], &[("TEAMD_MEMBER", name), ("TEAMD_TEAM", "survey")]);
    let mut both = [open("ann"), open("bob")];
    for _ in 0..20 {
        let id = both[0].call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["id"].clone();
        let take = json!({"taskId": id, "status": "in_progress"});
        both.iter_mut().for_each(|one| one.send_line(&call(7, "TaskUpdate", &take)));
        let refused = both.iter_mut().map(|one| one.receive_line()["result"]["isError"] == true);
        assert_eq!(refused.filter(|refused| *refused).count(), 1, "task {id}");
    }
    both.into_iter().for_each(|one| assert_eq!(one.close(), 0));
    env.shut_down();
}

#[test]
fn message_id_survives_moved_entries() {
    let env = TestEnv::with_team();
    let inbox = env.root().join("teams/survey/inboxes/team-lead.json");
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    for text in ["one", "two", "three"] {
        env.teamctl(["send", "team-lead", text]).expect_success();
    }
    let read = lead.call("ReadInbox", &json!({})).unwrap();
    // Somebody takes out what was read.
    lead.call("MarkRead", &json!({"ids": [read["messages"][0]["id"]]})).unwrap();
    let mut letters: Vec<Value> = serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    letters.remove(0);
    std::fs::File::create(&inbox).unwrap().write_all(json!(letters).to_string().as_bytes()).unwrap();
    let gone = lead.call("MarkRead", &json!({"ids": [read["messages"][0]["id"]]})).unwrap_err();
    assert!(gone.contains("no message of yours has that id"), "{gone}");
    lead.call("MarkRead", &json!({"ids": [read["messages"][1]["id"]]})).unwrap();
    let left = lead.call("ReadInbox", &json!({})).unwrap();
    let left: Vec<&Value> = left["messages"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    assert_eq!(left, ["three"]);
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

/// The payload of that type in a member's inbox, once it is there.
fn wait_for_payload(env: &TestEnv, name: &str, kind: &str) -> Value {
    let of = |letter: Value| serde_json::from_str::<Value>(letter["text"].as_str()?).ok();
    env.wait_until(kind, || {
        env.inbox("survey", name).into_iter().filter_map(of).find(|payload| payload["type"] == kind)
    })
}

#[test]
fn texts_longer_than_an_argument_are_accepted() {
    let env = TestEnv::with_daemon();
    let long = "x".repeat(140_000);
    let mut lead = RawMcpClient::start(&env, &[], &[]);
    lead.call("TeamCreate", &json!({"team_name": "survey", "description": long})).unwrap();
    assert_eq!(env.read_config()["description"], long);
    env.teamctl(["spawn", "ann", "-t", "survey", "--", "sleep", "3600"]).expect_success();
    let ask = json!({"type": "shutdown_request", "recipient": "ann", "content": long});
    lead.call("SendMessage", &ask).unwrap();
    assert_eq!(wait_for_payload(&env, "ann", "shutdown_request")["reason"], long);
    let plan = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "2099-01-01T00:00:00.000Z",
        "planFilePath": "", "planContent": "x", "requestId": "plan_approval-1@ann@survey"});
    let letter = json!([{"from": "ann", "text": plan.to_string(), "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = env.root().join("teams/survey/inboxes/team-lead.json");
    std::fs::File::create(inbox).unwrap().write_all(letter.to_string().as_bytes()).unwrap();
    lead.call("Deny", &json!({"id": "plan_approval-1@ann@survey", "reason": long})).unwrap();
    assert_eq!(wait_for_payload(&env, "ann", "plan_approval_response")["feedback"], long);
    let refused =
        lead.call("SpawnTeammate", &json!({"name": "bob", "prompt": "", "model": long})).unwrap_err();
    assert!(refused.contains("what was handed over is too long"), "{refused}");
    let kept = lead.call("TeamDelete", &json!({})).unwrap();
    assert_eq!((&kept["success"], &kept["team_name"]), (&json!(false), &json!("survey")), "{kept}");
    assert!(
        kept["message"].as_str().unwrap().starts_with("Cannot cleanup team with 1 active member(s): ann")
    );
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn killed_server_leaves_no_wait_process() {
    let env = TestEnv::with_team();
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    lead.send_line(&call(7, "Wait", &json!({"timeout_seconds": 600})));
    let children = format!("/proc/{0}/task/{0}/children", lead.child.id());
    let waiting = env.wait_until("it waits", || {
        std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse::<u32>().ok()
    });
    let waiting = TaggedProcesses::single(waiting);
    env.kill_process(lead.child.id());
    lead.close();
    assert!(waiting.exit_within(Duration::from_secs(30)), "nobody waits any more: {:?}", waiting.list());
    env.shut_down();
}
