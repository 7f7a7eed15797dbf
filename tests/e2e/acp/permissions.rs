//! Permission questions of an agent: answered by the lead, withdrawn at the end of the turn, and
//! denied if they are too large.

use super::{
    env_with_acp_profile, permission_request, received_calls, send, shut_down_member, spawn,
    turn_notification, wait_for_output,
};
use harness::TestEnv;
use serde_json::{Value, json};

fn answer_request(env: &TestEnv, request: &Value, outcome: &Value) {
    let mut text = json!({"type": "permission_response", "request_id": request["request_id"]});
    text.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
    env.teamctl(["send", "ann", &text.to_string(), "--summary", "answer"]).expect_success();
}

#[test]
fn permission_question_and_answer_pass_through_the_team() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do ask rm -r target"]);
    let request = permission_request(&env, 1);
    assert_eq!((request["agent_id"].as_str(), request["tool_name"].as_str()), (Some("ann"), Some("Bash")));
    assert_eq!(
        (request["tool_use_id"].as_str(), &request["input"]),
        (Some("t9"), &json!({"command": "rm -r target"}))
    );
    wait_for_output(&env, "? rm -r target: waits for permission (Bash)");
    let approval = |updates: &Value| json!({"subtype": "success", "response": {"updated_input": request["input"], "permission_updates": updates}});
    answer_request(&env, &request, &approval(&json!([])));
    turn_notification(&env, 1);
    wait_for_output(&env, r#""optionId":"yes""#);
    send(&env, "do ask rm -r target");
    let second_request = permission_request(&env, 2);
    assert_ne!(second_request["request_id"], request["request_id"]);
    answer_request(&env, &second_request, &approval(&second_request["permission_suggestions"]));
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
    let last_call = received_calls(&env, "session/prompt").pop().unwrap();
    let prompt = last_call["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(prompt.contains("not on a Friday"), "{last_call}");
    assert!(env.inbox("survey", "ann").iter().all(|message| message["read"] == true));
    shut_down_member(env);
}

/// Whether the event log has an event `kind` of the request `id`.
fn has_request_event(env: &TestEnv, kind: &str, id: &str) -> bool {
    env.events().iter().any(|event| event["event"] == kind && event["request_id"] == id)
}

#[test]
fn unanswered_question_ends_with_its_turn() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do ask a favour"]);
    let request = permission_request(&env, 1);
    assert_eq!(env.json(["requests"])["requests"][0]["id"], request["request_id"]);
    let id = request["request_id"].as_str().unwrap();
    // An ACP agent accepts no input other than its own, so this approval is rejected.
    env.teamctl(["approve", id, "--input", "{\"command\": \"ls\"}"]).expect_failure(76);
    assert_eq!(env.json(["requests"])["requests"][0]["id"], id);
    env.wait_until("the event log has the request", || {
        has_request_event(&env, "request_opened", id).then_some(())
    });
    assert_eq!(env.json(["interrupt", "ann"])["was_in_turn"], true);
    turn_notification(&env, 1);
    assert_eq!(env.json(["requests"])["requests"], json!([]));
    env.wait_until("the event log has the end of the request", || {
        has_request_event(&env, "request_withdrawn", id).then_some(())
    });
    // An answer after the end of the request has no effect.
    answer_request(&env, &request, &json!({"subtype": "error", "error": "no"}));
    send(&env, "do talk");
    assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
    let is_cancelled = env.read("out/heard").lines().any(|line| line.contains(r#""outcome":"cancelled""#));
    assert!(is_cancelled, "{}", env.read("out/heard"));
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
