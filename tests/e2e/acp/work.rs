//! Turns of one session: what they are given, what they do, what is shown of them.

use super::{BACKENDS, ends, heard, house, log, said, send, shows, spawn, turn};
use serde_json::json;

#[test]
fn every_text_is_a_turn_of_one_session_and_is_shown_harmlessly() {
    for backend in BACKENDS {
        let house = house(&[]);
        spawn(&house, &["--backend", backend, "--prompt", "do talk"]);
        assert_eq!(turn(&house, 1)["idleReason"], "available");
        shows(&house, "turn 1 in mode ask: \\u{1b}]0;evil\\u{7}done");
        send(&house, "do tool");
        assert_eq!(turn(&house, 2)["idleReason"], "available");
        shows(&house, "✓ look");
        shows(&house, "○ step one");
        let prompts = heard(&house, "session/prompt");
        assert_eq!(prompts[0]["params"]["prompt"], json!([{"type": "text", "text": "do talk"}]));
        assert!(prompts[1]["params"]["prompt"][0]["text"].as_str().unwrap().starts_with("<teammate-message"));
        let new = heard(&house, "session/new");
        assert_eq!((new.len(), prompts.len()), (1, 2));
        let server = &new[0]["params"]["mcpServers"][0];
        assert_eq!((server["name"].as_str(), &server["args"]), (Some("team"), &json!(["mcp"])));
        assert!(server["env"].as_array().unwrap().iter().any(|of| of["name"] == "TEAMD_TOKEN"), "{server}");
        let member = house.member("ann").unwrap();
        assert_eq!((member["feed"].as_str(), member["reaches"].as_str()), (Some("acp"), Some("turn-end")));
        assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
        ends(house);
    }
}

#[test]
fn a_message_while_it_is_busy_is_its_next_turn_and_an_interrupt_cancels() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do wait"]);
    shows(&house, "waiting");
    send(&house, "do talk");
    let interrupted = house.json(["interrupt", "ann"]);
    assert_eq!(interrupted["turn"], true);
    assert_eq!(heard(&house, "session/cancel").len(), 1);
    assert_eq!(turn(&house, 1)["idleReason"], "interrupted");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    assert_eq!(heard(&house, "session/new").len(), 1, "the same process, and the same session");
    ends(house);
}

#[test]
fn who_does_not_heed_a_cancel_is_ended_and_begun_again_with_its_session() {
    let house = house(&["stubborn"]);
    spawn(&house, &["--prompt", "do wait"]);
    shows(&house, "waiting");
    assert_eq!(house.json(["interrupt", "ann"])["turn"], true);
    assert_eq!(turn(&house, 1)["idleReason"], "interrupted");
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    let loaded = heard(&house, "session/load");
    assert_eq!(loaded.len(), 1);
    assert_eq!(loaded[0]["params"]["sessionId"], "s-1");
    assert!(!log(&house).contains("from an earlier life"), "what it said then was shown then");
    ends(house);
}

#[test]
fn a_task_is_done_by_a_turn_that_ends_well_and_failed_by_another() {
    let house = house(&[]);
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
            said(&house, "idle_notification").into_iter().find(|told| told["completedTaskId"] == id.as_str())
        };
        let told = house.until(&format!("{order} is told"), find);
        assert_eq!(told["completedStatus"], status, "{told}");
        if let Some(why) = why {
            assert!(told["failureReason"].as_str().unwrap().contains(why), "{told}");
        }
    }
    ends(house);
}

#[test]
fn what_it_prints_beside_the_protocol_is_shown_and_disturbs_nothing() {
    let house = house(&["chatty"]);
    spawn(&house, &["--prompt", "do chatter"]);
    assert_eq!(turn(&house, 1)["idleReason"], "available");
    for text in [
        "Loading model… \\u{1b}[31mred",
        "{\"not\": \"a message\"}",
        "warning: \\u{1b}[2Jnot a message",
        "[1, 2]",
    ] {
        shows(&house, text);
    }
    ends(house);
}

#[test]
fn files_are_read_and_written_below_its_directory_alone() {
    let house = house(&[]);
    let work = house.path("out/work");
    std::fs::create_dir(&work).unwrap();
    spawn(&house, &["--cwd", work.to_str().unwrap()]);
    let outside = house.path("out/outside");
    send(&house, &format!("do write {}", work.join("new").display()));
    turn(&house, 1);
    assert_eq!(house.read("out/work/new"), "written\n");
    send(&house, &format!("do read {}", work.join("new").display()));
    turn(&house, 2);
    shows(&house, r#"file: {"content":"written\n"}"#);
    for (number, order) in
        [(3, format!("do write {}", outside.display())), (4, "do read /etc/hostname".to_owned())]
    {
        send(&house, &order);
        turn(&house, number);
    }
    shows(&house, "it lies outside of");
    assert!(!outside.exists());
    ends(house);
}
