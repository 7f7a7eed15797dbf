//! A host without contact.

use crate::why::assert_documented;
use harness::{CUT_REASON, TestEnv, TwoHosts};
use serde_json::json;

/// The line of `teamctl status` that begins with `start`.
fn status_line(hosts: &TwoHosts, start: &str) -> String {
    let status = hosts.home.teamctl(["status"]).expect_success();
    let line = status.lines().find(|line| line.starts_with(start));
    line.unwrap_or_else(|| panic!("no line {start}: {status}")).to_owned()
}

/// How many spawns, exits and scheduled respawns of members this daemon has logged.
fn starts_and_ends(env: &TestEnv) -> usize {
    let kinds = ["member_spawned", "member_exited", "member_respawn_scheduled"];
    env.events()
        .iter()
        .filter(|event| event["on_host"].is_null())
        .filter(|event| event["event"].as_str().is_some_and(|kind| kinds.contains(&kind)))
        .count()
}

#[test]
fn member_without_contact_is_never_dead_and_nothing_is_restarted() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let member = annex.member("ann").unwrap();
    let before = [home, annex].map(starts_and_ends);
    hosts.cut();
    let contact = home.wait_until("the loss is noticed", || {
        let contact = hosts.contact();
        contact["contact"]["no_contact"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.ends_with(CUT_REASON))
            .then_some(contact)
    });
    assert_eq!(contact["host"], "devbox");
    let line = status_line(&hosts, "host devbox: no contact for ");
    assert!(line.ends_with(CUT_REASON), "{line}");
    let line = status_line(&hosts, "ann ");
    assert!(line.starts_with("ann        devbox  unknown "), "{line}");
    // Commands that would run on the other host say why they can't.
    for command in ["why", "capture", "kill"] {
        let output = home.teamctl([command, "ann"]);
        assert!(output.code != 0 && output.stderr.contains(CUT_REASON), "{output:?}");
    }
    home.teamctl(["send", "ann", "are you there?"]).expect_success();
    hosts.heal();
    hosts.wait_for_exchange();
    assert_eq!(annex.member("ann").unwrap()["pid"], member["pid"], "it was not started again");
    assert_eq!([home, annex].map(starts_and_ends), before);
    annex.wait_until("the message arrives", || (annex.inbox("survey", "ann").len() == 1).then_some(()));
    assert_eq!(status_line(&hosts, "ann ").split_whitespace().nth(1), Some("devbox"));
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

/// A program that appends its prompt to `done`. While the file `slow` exists, its turn does not end.
const PROGRAM: &str = r#"#!/bin/sh
dir=$(dirname "$0")
cat >>"$dir/done"
while [ -e "$dir/slow" ]; do sleep 0.1; done
"#;

#[test]
fn member_begins_no_turn_after_the_lease_and_goes_on_after_contact() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    annex.write_file("home/.config/teamd/config.toml", "lease = '1s'\n");
    annex.kill_process(annex.daemon_pid());
    annex.start_daemon();
    let program = annex.write_script("program", PROGRAM);
    let dir = program.parent().unwrap();
    let turns = || std::fs::read_to_string(dir.join("done")).unwrap_or_default();
    annex.write_profile("slow", &format!("delivery = 'turn'\nprogram = '{}'\n", program.display()));
    for name in ["ann", "bob"] {
        home.teamctl(["spawn", name, "--host", "devbox", "--profile", "slow"]).expect_success();
    }
    std::fs::File::create(dir.join("slow")).unwrap();
    home.teamctl(["send", "ann", "message one"]).expect_success();
    annex.wait_until("the turn runs", || turns().contains("message one").then_some(()));
    home.teamctl(["send", "ann", "message two"]).expect_success();
    annex.wait_until("the next message is there", || (annex.inbox("survey", "ann").len() == 2).then_some(()));
    hosts.cut();
    // An idle member shows that the lease has ended.
    annex.wait_until("the lease has ended", || {
        annex.member("bob").filter(|bob| bob["turn_pause"]["cause"] == "no_contact")
    });
    std::fs::remove_file(dir.join("slow")).unwrap();
    let ann = annex.wait_until("the turn has ended, and no other begins", || {
        let held = |ann: &serde_json::Value| ann["turn_pause"]["cause"] == "no_contact";
        annex.member("ann").filter(|ann| held(ann) && ann["activity"] == "idle")
    });
    assert_eq!((&ann["flags"], &ann["unread"]), (&json!(["paused"]), &json!(1)), "{ann}");
    assert!(!turns().contains("message two"));
    let status = annex.teamctl(["status", "ann"]).expect_success();
    assert!(status.contains("begins no turn until the home of its team has contact again"), "{status}");
    assert_documented("no_contact", &annex.json(["why", "ann"])["causes"][0]);
    hosts.heal();
    annex.wait_until("the next turn begins", || turns().contains("message two").then_some(()));
    home.wait_until("the home has the event", || {
        home.events().iter().any(|event| event["event"] == "member_turns_held").then_some(())
    });
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}
