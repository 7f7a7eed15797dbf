//! Its questions for permission.

use super::{
    env_with_acp_profile, permission_request, received_calls, send, shut_down_member, spawn,
    turn_notification, wait_for_output,
};
use harness::TestEnv;
use serde_json::{Value, json};

fn answer_request(env: &TestEnv, question: &Value, outcome: &Value) {
    let mut text = json!({"type": "permission_response", "request_id": question["request_id"]});
    text.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
    env.teamctl(["send", "ann", &text.to_string(), "--summary", "answer"]).expect_success();
}

#[test]
fn permission_question_and_answer_pass_through_the_team() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do ask rm -r target"]);
    let asked = permission_request(&env, 1);
    assert_eq!((asked["agent_id"].as_str(), asked["tool_name"].as_str()), (Some("ann"), Some("Bash")));
    assert_eq!(
        (asked["tool_use_id"].as_str(), &asked["input"]),
        (Some("t9"), &json!({"command": "rm -r target"}))
    );
    wait_for_output(&env, "? rm -r target: waits for permission (Bash)");
    let yes = |updates: &Value| json!({"subtype": "success", "response": {"updated_input": asked["input"], "permission_updates": updates}});
    answer_request(&env, &asked, &yes(&json!([])));
    turn_notification(&env, 1);
    wait_for_output(&env, r#""optionId":"yes""#);
    send(&env, "do ask rm -r target");
    let asked_again = permission_request(&env, 2);
    assert_ne!(asked_again["request_id"], asked["request_id"]);
    answer_request(&env, &asked_again, &yes(&asked_again["permission_suggestions"]));
    turn_notification(&env, 2);
    wait_for_output(&env, r#""optionId":"ever""#);
    send(&env, "do ask rm -r target");
    answer_request(
        &env,
        &permission_request(&env, 3),
        &json!({"subtype": "error", "error": "not on a Friday"}),
    );
    turn_notification(&env, 3);
    wait_for_output(&env, r#""optionId":"no""#);
    send(&env, "do talk");
    turn_notification(&env, 4);
    let last = received_calls(&env, "session/prompt").pop().unwrap();
    let ahead = last["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(ahead.contains("not on a Friday"), "{last}");
    assert!(env.inbox("survey", "ann").iter().all(|message| message["read"] == true));
    shut_down_member(env);
}

/// Whether the event log has that of this request.
fn has_request_event(env: &TestEnv, kind: &str, id: &str) -> bool {
    env.events().iter().any(|event| event["event"] == kind && event["request_id"] == id)
}

#[test]
fn unanswered_question_ends_with_its_turn() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do ask a favour"]);
    let asked = permission_request(&env, 1);
    assert_eq!(env.json(["requests"])["requests"][0]["id"], asked["request_id"]);
    let id = asked["request_id"].as_str().unwrap();
    // It goes on with its own input alone.
    env.teamctl(["approve", id, "--input", "{\"command\": \"ls\"}"]).expect_failure(76);
    assert_eq!(env.json(["requests"])["requests"][0]["id"], id);
    env.wait_until("it is told", || has_request_event(&env, "request_opened", id).then_some(()));
    assert_eq!(env.json(["interrupt", "ann"])["was_in_turn"], true);
    turn_notification(&env, 1);
    assert_eq!(env.json(["requests"])["requests"], json!([]));
    env.wait_until("its end is told", || has_request_event(&env, "request_withdrawn", id).then_some(()));
    // Too late, and no harm.
    answer_request(&env, &asked, &json!({"subtype": "error", "error": "no"}));
    send(&env, "do talk");
    assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
    let cancelled = env.read("out/heard").lines().any(|line| line.contains(r#""outcome":"cancelled""#));
    assert!(cancelled, "{}", env.read("out/heard"));
    shut_down_member(env);
}

#[test]
fn oversized_question_is_denied() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do talk"]);
    turn_notification(&env, 1);
    send(&env, &format!("do ask {}", "\"".repeat(100 << 10)));
    turn_notification(&env, 2);
    wait_for_output(&env, "the question is too large to be asked");
    assert_eq!(env.json(["requests"])["requests"], json!([]));
    shut_down_member(env);
}
