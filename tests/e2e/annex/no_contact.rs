//! A host without contact.

use harness::{CUT_REASON, TestEnv, TwoHosts};

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
