//! `teamctl run` with members on another host.

use super::{config_of, connect_words};
use harness::TestEnv;
use serde_json::json;

/// A run file with two members on the other host, which only this file describes, and one here. The
/// tasks say who did them and in which home directory.
fn run_file(annex: &TestEnv, log: &str) -> String {
    let task = |key: &str, owner: &str| {
        let command = format!("echo {owner} $HOME $TOKEN >>{log}");
        format!("[[task]]\nkey = '{key}'\nsubject = '{key}'\nowner = '{owner}'\ncommand = '{command}'\n")
    };
    format!(
        "name = 'far'\nprofile = 'worker'\n[host.devbox]\nconnect = {}\nlabels = ['gpu']\nslots = 2\n\
         [[member]]\nname = 'ann'\nhost = 'devbox'\nenv = {{ TOKEN = 'a b' }}\n\
         [[member]]\nname = 'bob'\nhost = 'any'\nneeds = ['gpu']\n\
         [[member]]\nname = 'eve'\n{}{}{}",
        json!(connect_words(annex)),
        task("one", "ann"),
        task("two", "bob"),
        task("three", "eve")
    )
}

#[test]
fn run_starts_and_ends_members_on_another_host() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    let log = home.path("out/log");
    home.write_file("run.toml", run_file(&annex, &log.display().to_string()));
    home.teamctl(["run", "run.toml"]).expect_success();
    let text = std::fs::read_to_string(&log).unwrap();
    let place = |env: &TestEnv| env.path("home").display().to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let [here, there] = [place(&home), place(&annex)];
    assert_eq!(lines, [format!("ann {there} a b"), format!("bob {there}"), format!("eve {here}")]);
    annex.wait_until("the mirror is deleted", || {
        (!annex.root().join("teams/far").exists() && annex.member("ann").is_none()).then_some(())
    });
    assert!(config_of(&home).is_some(), "the other team stays");
    home.shut_down();
    annex.shut_down();
}

#[test]
fn task_of_a_member_that_respawns_on_another_host_is_completed() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    let marker = home.path("out/marker").display().to_string();
    let text = format!(
        "name = 'far'\nprofile = 'worker'\n[host.devbox]\nconnect = {}\n\
         [[member]]\nname = 'ann'\nhost = 'devbox'\nrestart = 'on-failure'\n\
         [[task]]\nkey = 'one'\nsubject = 'one'\nowner = 'ann'\n\
         command = 'test -e {marker} || {{ touch {marker}; kill -9 $PPID; }}'\n",
        json!(connect_words(&annex)),
    );
    home.write_file("run.toml", text);
    home.teamctl(["run", "run.toml"]).expect_success();
    let events = home.events();
    assert!(events.iter().any(|event| event["event"] == "member_respawn_scheduled"), "{events:?}");
    home.shut_down();
    annex.shut_down();
}

#[test]
fn member_that_no_host_can_take_ends_the_run_with_the_reason() {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    let text = run_file(&annex, "/dev/null").replace("slots = 2", "slots = 1").replace("'devbox'", "'any'");
    home.write_file("run.toml", text);
    let error = home.teamctl(["run", "run.toml"]).expect_failure(76);
    assert!(error.contains("devbox is full (1 of 1 slots)"), "{error}");
    home.shut_down();
    annex.shut_down();
}
