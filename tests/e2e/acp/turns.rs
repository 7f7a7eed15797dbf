//! Turns of one session: what they are given, what they do, what is shown of them.

use super::{
    BACKENDS, env_with_acp_profile, payloads_to_lead, read_log, received_calls, send, shut_down_member,
    spawn, turn_notification, wait_for_output,
};
use serde_json::json;

#[test]
fn each_text_is_one_turn_of_the_session() {
    for backend in BACKENDS {
        let house = env_with_acp_profile(&[]);
        spawn(&house, &["--backend", backend, "--prompt", "do talk"]);
        assert_eq!(turn_notification(&house, 1)["idleReason"], "available");
        wait_for_output(&house, "turn 1 in mode ask: \\u{1b}]0;evil\\u{7}done");
        send(&house, "do tool");
        assert_eq!(turn_notification(&house, 2)["idleReason"], "available");
        wait_for_output(&house, "✓ look");
        wait_for_output(&house, "○ step one");
        let prompts = received_calls(&house, "session/prompt");
        assert_eq!(prompts[0]["params"]["prompt"], json!([{"type": "text", "text": "do talk"}]));
        assert!(prompts[1]["params"]["prompt"][0]["text"].as_str().unwrap().starts_with("<teammate-message"));
        let new = received_calls(&house, "session/new");
        assert_eq!((new.len(), prompts.len()), (1, 2));
        let server = &new[0]["params"]["mcpServers"][0];
        assert_eq!((server["name"].as_str(), &server["args"]), (Some("team"), &json!(["mcp"])));
        assert!(server["env"].as_array().unwrap().iter().any(|of| of["name"] == "TEAMD_TOKEN"), "{server}");
        let member = house.member("ann").unwrap();
        assert_eq!(
            (member["delivery"].as_str(), member["delivery_point"].as_str()),
            (Some("acp"), Some("turn-end"))
        );
        assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
        shut_down_member(house);
    }
}

#[test]
fn message_while_busy_is_the_next_turn_and_interrupt_cancels() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do wait"]);
    wait_for_output(&house, "waiting");
    send(&house, "do talk");
    let interrupted = house.json(["interrupt", "ann"]);
    assert_eq!(interrupted["was_in_turn"], true);
    assert_eq!(received_calls(&house, "session/cancel").len(), 1);
    assert_eq!(turn_notification(&house, 1)["idleReason"], "interrupted");
    assert_eq!(turn_notification(&house, 2)["idleReason"], "available");
    assert_eq!(received_calls(&house, "session/new").len(), 1, "the same process, and the same session");
    shut_down_member(house);
}

#[test]
fn ignored_cancel_respawns_the_program_with_its_session() {
    let house = env_with_acp_profile(&["stubborn"]);
    spawn(&house, &["--prompt", "do wait"]);
    wait_for_output(&house, "waiting");
    assert_eq!(house.json(["interrupt", "ann"])["was_in_turn"], true);
    assert_eq!(turn_notification(&house, 1)["idleReason"], "interrupted");
    send(&house, "do talk");
    assert_eq!(turn_notification(&house, 2)["idleReason"], "available");
    let loaded = received_calls(&house, "session/load");
    assert_eq!(loaded.len(), 1);
    assert_eq!(loaded[0]["params"]["sessionId"], "s-1");
    assert!(!read_log(&house).contains("from an earlier life"), "what it said then was shown then");
    shut_down_member(house);
}

#[test]
fn task_outcome_follows_the_stop_reason() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &[]);
    let task = |order: &str| {
        let made = house.json(["task", "create", "it", "--description", order]);
        made["task"]["id"].as_str().unwrap().to_owned()
    };
    for (order, status, why) in [
        ("do talk", "completed", None),
        ("do stop refusal", "failed", Some("it refused")),
        ("do stop max_tokens", "failed", Some("it came to its limit of tokens")),
        ("do fail", "failed", Some("the model is on fire")),
    ] {
        let id = task(order);
        let find = || {
            payloads_to_lead(&house, "idle_notification")
                .into_iter()
                .find(|told| told["completedTaskId"] == id.as_str())
        };
        let told = house.wait_until(&format!("{order} is told"), find);
        assert_eq!(told["completedStatus"], status, "{told}");
        if let Some(why) = why {
            assert!(told["failureReason"].as_str().unwrap().contains(why), "{told}");
        }
    }
    shut_down_member(house);
}

#[test]
fn output_outside_the_protocol_is_shown() {
    let house = env_with_acp_profile(&["chatty"]);
    spawn(&house, &["--prompt", "do chatter"]);
    assert_eq!(turn_notification(&house, 1)["idleReason"], "available");
    for text in [
        "Loading model… \\u{1b}[31mred",
        "{\"not\": \"a message\"}",
        "warning: \\u{1b}[2Jnot a message",
        "[1, 2]",
    ] {
        wait_for_output(&house, text);
    }
    shut_down_member(house);
}

#[test]
fn file_access_is_limited_to_the_working_directory() {
    let house = env_with_acp_profile(&[]);
    let work = house.path("out/work");
    std::fs::create_dir(&work).unwrap();
    spawn(&house, &["--cwd", work.to_str().unwrap()]);
    let outside = house.path("out/outside");
    send(&house, &format!("do write {}", work.join("new").display()));
    turn_notification(&house, 1);
    assert_eq!(house.read("out/work/new"), "written\n");
    send(&house, &format!("do read {}", work.join("new").display()));
    turn_notification(&house, 2);
    wait_for_output(&house, r#"file: {"content":"written\n"}"#);
    for (number, order) in
        [(3, format!("do write {}", outside.display())), (4, "do read /etc/hostname".to_owned())]
    {
        send(&house, &order);
        turn_notification(&house, number);
    }
    wait_for_output(&house, "it lies outside of");
    assert!(!outside.exists());
    shut_down_member(house);
}
