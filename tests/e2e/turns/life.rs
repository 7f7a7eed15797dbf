//! From the start to the end, with a daemon or without.

use super::{Play, agent, house, send, task, worker};
use serde_json::json;

#[test]
fn a_shutdown_waits_for_the_turn_and_takes_the_background_with_it() {
    let house = house();
    house.gate("out/go");
    task(&house, "long", "setsid sleep 3600 & touch out/up; read line <out/go");
    let mut play = Play::start(house, &worker(), None);
    play.is_up();
    let text = json!({"type": "shutdown_request", "requestId": "shutdown-1@ann", "from": "team-lead",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    send(&play.house, &text.to_string());
    play.wake();
    play.turn("it knows", |now| now["shutdown_requested"] == true && now["pid"].is_u64());
    play.house.open_gate("out/go");
    let (house, ended) = play.ends();
    assert_eq!(ended, json!({"exit": 0}));
    let lead = house.inbox("survey", "team-lead");
    let last = lead.last().unwrap()["text"].as_str().unwrap();
    assert!(last.contains("shutdown_approved") && last.contains("shutdown-1@ann"), "{last}");
    assert_eq!(house.json(["-t", "survey", "task", "get", "1"])["task"]["status"], "completed");
    house.end();
}

#[test]
fn without_a_daemon_it_works_on_and_says_what_it_does_to_the_next_one() {
    let house = house();
    house.gate("out/go");
    task(&house, "long", "touch out/up; read line <out/go");
    task(&house, "next", "touch out/next; exec sleep 3600");
    let mut play = Play::start(house, &worker(), None);
    play.is_up();
    play.hang_up();
    play.house.open_gate("out/go");
    play.house.until("it works on", || play.house.path("out/next").exists().then_some(()));
    let turn = loop {
        let turn = play.comes_back();
        if turn["number"] == 2 {
            break turn;
        }
        // It came back while the first one still ran.
        play.hang_up();
    };
    assert_eq!((&turn["activity"], &turn["about"]), (&json!("active"), &json!("task 2: next")));
    play.tell(&json!("adopted"));
    play.end().end();
}

#[test]
fn a_program_that_is_missing_ends_the_agent_before_or_after_it_started() {
    let mut play = Play::start(house(), &agent(&["no-such-program"], &[], &json!("none")), None);
    let message = play.until("it fails", |word| word["failed"]["message"].as_str().map(str::to_owned));
    assert!(message.contains("cannot start no-such-program"), "{message}");
    play.tell(&json!("noted"));
    assert_eq!(play.exit_code(), Some(72));

    let house = house();
    let program = house.script("prog", "#!/bin/sh\nrm -- \"$0\"\n").display().to_string();
    let mut play = Play::start(house, &agent(&[&program], &[], &json!("none")), None);
    for (turns, text) in [(1, "one"), (2, "two")] {
        send(&play.house, text);
        play.wake();
        if turns == 1 {
            play.idle(turns);
        }
    }
    let (house, ended) = play.ends();
    let why = ended["not_started"].as_str().unwrap();
    assert!(why.contains("cannot start") && why.contains("prog"), "{why}");
    let inbox = house.inbox("survey", "ann");
    assert_eq!((&inbox[0]["read"], &inbox[1]["read"]), (&json!(true), &json!(false)));
    house.end();
}
