//! Its questions for permission.

use super::{ends, heard, house, question, send, shows, spawn, turn};
use harness::House;
use serde_json::{Value, json};

fn answer(house: &House, question: &Value, outcome: &Value) {
    let mut text = json!({"type": "permission_response", "request_id": question["request_id"]});
    text.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
    house.teamctl(["send", "ann", &text.to_string(), "--summary", "answer"]).ok();
}

#[test]
fn its_questions_for_permission_are_the_teams_and_the_answers_go_back() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do ask rm -r target"]);
    let asked = question(&house, 1);
    assert_eq!((asked["agent_id"].as_str(), asked["tool_name"].as_str()), (Some("ann"), Some("Bash")));
    assert_eq!(
        (asked["tool_use_id"].as_str(), &asked["input"]),
        (Some("t9"), &json!({"command": "rm -r target"}))
    );
    shows(&house, "? rm -r target: waits for permission (Bash)");
    let yes = |updates: &Value| json!({"subtype": "success", "response": {"updated_input": asked["input"], "permission_updates": updates}});
    answer(&house, &asked, &yes(&json!([])));
    turn(&house, 1);
    shows(&house, r#""optionId":"yes""#);
    send(&house, "do ask rm -r target");
    let asked_again = question(&house, 2);
    assert_ne!(asked_again["request_id"], asked["request_id"]);
    answer(&house, &asked_again, &yes(&asked_again["permission_suggestions"]));
    turn(&house, 2);
    shows(&house, r#""optionId":"ever""#);
    send(&house, "do ask rm -r target");
    answer(&house, &question(&house, 3), &json!({"subtype": "error", "error": "not on a Friday"}));
    turn(&house, 3);
    shows(&house, r#""optionId":"no""#);
    send(&house, "do talk");
    turn(&house, 4);
    let last = heard(&house, "session/prompt").pop().unwrap();
    let ahead = last["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(ahead.contains("not on a Friday"), "{last}");
    assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
    ends(house);
}

/// Whether the event log has that of this request.
fn told(house: &House, kind: &str, id: &str) -> bool {
    house.events().iter().any(|event| event["event"] == kind && event["request"] == id)
}

#[test]
fn a_question_that_nobody_answers_ends_with_its_turn() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do ask a favour"]);
    let asked = question(&house, 1);
    assert_eq!(house.json(["requests"])["requests"][0]["id"], asked["request_id"]);
    let id = asked["request_id"].as_str().unwrap();
    // It goes on with its own input alone.
    house.teamctl(["approve", id, "--input", "{\"command\": \"ls\"}"]).fails(76);
    assert_eq!(house.json(["requests"])["requests"][0]["id"], id);
    house.until("it is told", || told(&house, "request_opened", id).then_some(()));
    assert_eq!(house.json(["interrupt", "ann"])["turn"], true);
    turn(&house, 1);
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    house.until("its end is told", || told(&house, "request_withdrawn", id).then_some(()));
    // Too late, and no harm.
    answer(&house, &asked, &json!({"subtype": "error", "error": "no"}));
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    let cancelled = house.read("out/heard").lines().any(|line| line.contains(r#""outcome":"cancelled""#));
    assert!(cancelled, "{}", house.read("out/heard"));
    ends(house);
}

#[test]
fn a_question_that_no_message_can_hold_is_answered_with_no() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do talk"]);
    turn(&house, 1);
    send(&house, &format!("do ask {}", "\"".repeat(100 << 10)));
    turn(&house, 2);
    shows(&house, "the question is too large to be asked");
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    ends(house);
}
