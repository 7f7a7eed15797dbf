//! Edge cases of the tools: concurrent claims of a task, message ids after the inbox has changed,
//! long texts, and a killed server.

use super::{RawMcpClient, call};
use harness::{TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::io::Write;

#[test]
fn concurrent_claims_have_one_owner() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_success();
    let start_client =
        |name| RawMcpClient::start(&env, &[], &[("TEAMD_MEMBER", name), ("TEAMD_TEAM", "survey")]);
    let mut clients = [start_client("ann"), start_client("bob")];
    for _ in 0..20 {
        let id = clients[0].call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["id"].clone();
        let claim = json!({"taskId": id, "status": "in_progress"});
        clients.iter_mut().for_each(|client| client.send_line(&call(7, "TaskUpdate", &claim)));
        let errors = clients.iter_mut().map(|client| client.receive_line()["result"]["isError"] == true);
        assert_eq!(errors.filter(|is_error| *is_error).count(), 1, "task {id} has one owner");
    }
    clients.into_iter().for_each(|client| assert_eq!(client.close(), 0));
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
    let reply = lead.call("ReadInbox", &json!({})).unwrap();
    // Another program removes the read message.
    lead.call("MarkRead", &json!({"ids": [reply["messages"][0]["id"]]})).unwrap();
    let mut messages: Vec<Value> = serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    messages.remove(0);
    std::fs::File::create(&inbox).unwrap().write_all(json!(messages).to_string().as_bytes()).unwrap();
    let error = lead.call("MarkRead", &json!({"ids": [reply["messages"][0]["id"]]})).unwrap_err();
    assert!(error.contains("no message of yours has that id"), "{error}");
    lead.call("MarkRead", &json!({"ids": [reply["messages"][1]["id"]]})).unwrap();
    let reply = lead.call("ReadInbox", &json!({})).unwrap();
    let texts: Vec<&Value> =
        reply["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["three"]);
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

/// Waits for a payload of type `kind` in the inbox of the member, and returns it.
fn wait_for_payload(env: &TestEnv, name: &str, kind: &str) -> Value {
    let parse_payload = |message: Value| serde_json::from_str::<Value>(message["text"].as_str()?).ok();
    env.wait_until(&format!("{name} has a {kind}"), || {
        env.inbox("survey", name)
            .into_iter()
            .filter_map(parse_payload)
            .find(|payload| payload["type"] == kind)
    })
}

#[test]
fn texts_longer_than_an_argument_are_accepted() {
    let env = TestEnv::with_daemon();
    let long_text = "x".repeat(140_000);
    let mut lead = RawMcpClient::start(&env, &[], &[]);
    lead.call("TeamCreate", &json!({"team_name": "survey", "description": long_text})).unwrap();
    assert_eq!(env.read_config()["description"], long_text);
    env.teamctl(["spawn", "ann", "-t", "survey", "--", "sleep", "3600"]).expect_success();
    let request = json!({"type": "shutdown_request", "recipient": "ann", "content": long_text});
    lead.call("SendMessage", &request).unwrap();
    assert_eq!(wait_for_payload(&env, "ann", "shutdown_request")["reason"], long_text);
    let plan = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "2099-01-01T00:00:00.000Z",
        "planFilePath": "", "planContent": "x", "requestId": "plan_approval-1@ann@survey"});
    let messages = json!([{"from": "ann", "text": plan.to_string(), "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = env.root().join("teams/survey/inboxes/team-lead.json");
    std::fs::File::create(inbox).unwrap().write_all(messages.to_string().as_bytes()).unwrap();
    lead.call("Deny", &json!({"id": "plan_approval-1@ann@survey", "reason": long_text})).unwrap();
    assert_eq!(wait_for_payload(&env, "ann", "plan_approval_response")["feedback"], long_text);
    let error =
        lead.call("SpawnTeammate", &json!({"name": "bob", "prompt": "", "model": long_text})).unwrap_err();
    assert!(error.contains("what was handed over is too long"), "{error}");
    let reply = lead.call("TeamDelete", &json!({})).unwrap();
    assert_eq!((&reply["success"], &reply["team_name"]), (&json!(false), &json!("survey")), "{reply}");
    assert!(
        reply["message"].as_str().unwrap().starts_with("Cannot cleanup team with 1 active member(s): ann")
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
    let wait_pid = env.wait_until("the server has started a wait process", || {
        std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse::<u32>().ok()
    });
    let wait_process = TaggedProcesses::single(wait_pid);
    env.kill_process(lead.child.id());
    lead.close();
    assert!(
        wait_process.exit_within(harness::TIMEOUT),
        "the wait process has ended: {:?}",
        wait_process.list()
    );
    env.shut_down();
}
