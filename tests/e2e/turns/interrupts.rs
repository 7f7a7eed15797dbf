//! A turn that is interrupted ends, and the agent does not.

use super::{Play, house, task, worker};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn a_turn_is_interrupted_and_the_agent_lives_on() {
    let house = house();
    task(&house, "stubborn", "trap '' INT TERM; touch out/up; while :; do sleep 1; done");
    let mut play = Play::start(house, &worker(), None);
    play.is_up();
    play.tell(&json!("interrupt"));
    assert_eq!(play.idle(1)["reason"], "interrupted");
    assert!(play.until("it answers", |word| word["interrupted"]["turn"].as_bool()));
    let told = play.idle_notifications();
    assert_eq!(
        (&told[0]["idleReason"], &told[0]["completedStatus"]),
        (&json!("interrupted"), &json!("failed"))
    );
    play.tell(&json!("interrupt"));
    assert!(!play.until("it answers", |word| word["interrupted"]["turn"].as_bool()));
    task(&play.house, "next", "touch out/next");
    play.wake();
    play.idle(2);
    assert!(play.house.path("out/next").exists());
    play.end().end();
}

#[test]
fn an_interrupted_turn_leaves_nothing_in_its_session() {
    let house = house();
    let stubborn = "(trap '' INT TERM; touch out/deaf; while :; do sleep 1; done) &";
    task(&house, "serve", &format!("sleep 777 & {stubborn} touch out/up; exec sleep 3600"));
    let mut play = Play::start(house, &worker(), None);
    let up = |name: &str| play.house.path(name).exists();
    play.house.until("it is up", || (up("out/up") && up("out/deaf")).then_some(()));
    play.tell(&json!("interrupt"));
    assert_eq!(play.idle(1)["reason"], "interrupted");
    play.nothing_sleeps();
    play.end().end();
}

#[test]
fn an_interrupt_while_a_turn_is_written_down_is_not_for_the_next_one() {
    let house = house();
    let file = house.root().join("tasks/survey/1.json");
    task(&house, "one", &format!("cp {0} out/whole; echo '{{' >{0}", file.display()));
    task(&house, "two", "sleep 0.3; touch out/next");
    let mut play = Play::start(house, &worker(), None);
    let first = play.turn("it works", |now| now["pid"].is_u64())["pid"].clone();
    // Reaped: now it reads the damaged file, and is patient with it.
    play.house.until("it ended", || (!PathBuf::from(format!("/proc/{first}")).exists()).then_some(()));
    Command::new("kill").args(["-INT", &play.pid.to_string()]).status().unwrap();
    play.house.put("root/tasks/survey/1.json", play.house.read("out/whole"));
    assert_eq!(play.idle(2)["reason"], "available");
    assert!(play.house.path("out/next").exists());
    play.end().end();
}

#[test]
fn ctrl_c_in_the_pane_is_an_interrupt() {
    let house = house();
    task(&house, "long", "touch out/up; exec sleep 3600");
    let mut play = Play::in_a_pane(house, &worker());
    play.is_up();
    play.house.tmux(["send-keys", "-t", "ann", "C-c"]);
    assert_eq!(play.idle(1)["reason"], "interrupted");
    play.end().end();
}
