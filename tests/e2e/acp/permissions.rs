//! Its questions for permission.

use super::{
    env_with_acp_profile, permission_request, received_calls, send, shut_down_member, spawn,
    turn_notification, wait_for_output,
};
use harness::TestEnv;
use serde_json::{Value, json};

fn answer_request(house: &TestEnv, question: &Value, outcome: &Value) {
    let mut text = json!({"type": "permission_response", "request_id": question["request_id"]});
    text.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
    house.teamctl(["send", "ann", &text.to_string(), "--summary", "answer"]).expect_success();
}

#[test]
fn permission_question_and_answer_pass_through_the_team() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do ask rm -r target"]);
    let asked = permission_request(&house, 1);
    assert_eq!((asked["agent_id"].as_str(), asked["tool_name"].as_str()), (Some("ann"), Some("Bash")));
    assert_eq!(
        (asked["tool_use_id"].as_str(), &asked["input"]),
        (Some("t9"), &json!({"command": "rm -r target"}))
    );
    wait_for_output(&house, "? rm -r target: waits for permission (Bash)");
    let yes = |updates: &Value| json!({"subtype": "success", "response": {"updated_input": asked["input"], "permission_updates": updates}});
    answer_request(&house, &asked, &yes(&json!([])));
    turn_notification(&house, 1);
    wait_for_output(&house, r#""optionId":"yes""#);
    send(&house, "do ask rm -r target");
    let asked_again = permission_request(&house, 2);
    assert_ne!(asked_again["request_id"], asked["request_id"]);
    answer_request(&house, &asked_again, &yes(&asked_again["permission_suggestions"]));
    turn_notification(&house, 2);
    wait_for_output(&house, r#""optionId":"ever""#);
    send(&house, "do ask rm -r target");
    answer_request(
        &house,
        &permission_request(&house, 3),
        &json!({"subtype": "error", "error": "not on a Friday"}),
    );
    turn_notification(&house, 3);
    wait_for_output(&house, r#""optionId":"no""#);
    send(&house, "do talk");
    turn_notification(&house, 4);
    let last = received_calls(&house, "session/prompt").pop().unwrap();
    let ahead = last["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(ahead.contains("not on a Friday"), "{last}");
    assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
    shut_down_member(house);
}

/// Whether the event log has that of this request.
fn has_request_event(house: &TestEnv, kind: &str, id: &str) -> bool {
    house.events().iter().any(|event| event["event"] == kind && event["request_id"] == id)
}

#[test]
fn unanswered_question_ends_with_its_turn() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do ask a favour"]);
    let asked = permission_request(&house, 1);
    assert_eq!(house.json(["requests"])["requests"][0]["id"], asked["request_id"]);
    let id = asked["request_id"].as_str().unwrap();
    // It goes on with its own input alone.
    house.teamctl(["approve", id, "--input", "{\"command\": \"ls\"}"]).expect_failure(76);
    assert_eq!(house.json(["requests"])["requests"][0]["id"], id);
    house.wait_until("it is told", || has_request_event(&house, "request_opened", id).then_some(()));
    assert_eq!(house.json(["interrupt", "ann"])["was_in_turn"], true);
    turn_notification(&house, 1);
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    house.wait_until("its end is told", || has_request_event(&house, "request_withdrawn", id).then_some(()));
    // Too late, and no harm.
    answer_request(&house, &asked, &json!({"subtype": "error", "error": "no"}));
    send(&house, "do talk");
    assert_eq!(turn_notification(&house, 2)["idleReason"], "available");
    let cancelled = house.read("out/heard").lines().any(|line| line.contains(r#""outcome":"cancelled""#));
    assert!(cancelled, "{}", house.read("out/heard"));
    shut_down_member(house);
}

#[test]
fn oversized_question_is_denied() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do talk"]);
    turn_notification(&house, 1);
    send(&house, &format!("do ask {}", "\"".repeat(100 << 10)));
    turn_notification(&house, 2);
    wait_for_output(&house, "the question is too large to be asked");
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    shut_down_member(house);
}
