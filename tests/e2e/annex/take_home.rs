//! The home of a team is lost, and another host takes it. Then the old home comes back.

use super::config_of;
use harness::{TestEnv, TwoHosts};
use serde_json::Value;
use std::collections::BTreeSet;

fn find_task(env: &TestEnv, subject: &str) -> Option<Value> {
    env.tasks("survey").into_iter().find(|task| task["subject"] == subject)
}

fn member_names(env: &TestEnv) -> Vec<String> {
    let config = config_of(env).unwrap();
    let members = config["members"].as_array().unwrap().iter();
    members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn home_is_taken_and_the_old_one_changes_nothing_when_it_comes_back() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "bob", "--", "sleep", "1000"]).expect_success();
    home.teamctl(["task", "create", "count", "--command", "true"]).expect_success();
    let id = find_task(home, "count").unwrap()["id"].as_str().unwrap().to_owned();
    home.teamctl(["task", "update", &id, "--owner", "bob", "--status", "in_progress"]).expect_success();
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    let error = annex.teamctl(["home", "take", "survey", "--yes"]).expect_failure(76);
    assert!(error.contains("its home has contact"), "{error}");
    hosts.wait_for_exchange();
    annex.wait_until("the mirror has the claim", || {
        (find_task(annex, "count")?["owner"] == "bob").then_some(())
    });
    hosts.cut();
    annex.wait_until("the annex notices that", || {
        (annex.teamctl(["home", "take", "survey", "--yes"]).code == 0).then_some(())
    });
    assert_eq!(member_names(annex), ["team-lead", "ann"]);
    annex.wait_until("ann has done the task that bob had", || {
        let task = find_task(annex, "count")?;
        (task["status"] == "completed" && task["owner"] == "ann").then_some(())
    });
    // ann works for the new home, without contact.
    annex.teamctl(["task", "create", "go on", "--command", "true"]).expect_success();
    annex.wait_until("ann has done the task", || {
        (find_task(annex, "go on")?["status"] == "completed").then_some(())
    });
    // The old home does not know yet, and changes its copy.
    home.teamctl(["task", "create", "too late"]).expect_success();
    hosts.heal();
    home.wait_until("the old home is told", || {
        home.teamctl(["status"]).stdout.contains("the home is devbox since").then_some(())
    });
    home.wait_until("its members have ended", || home.member("bob").is_none().then_some(()));
    for killed in [false, true] {
        if killed {
            home.kill_process(home.daemon_pid());
            home.start_daemon();
        }
        for command in [
            &["task", "create", "x"][..],
            &["send", "ann", "x"],
            &["spawn", "eve", "--profile", "worker"],
            &["spawn", "eve", "--host", "devbox", "--profile", "worker"],
            &["why", "ann"],
        ] {
            let output = home.teamctl_with(command, &[]);
            assert_eq!(output.code, 76, "{command:?}: {output:?}");
            assert!(output.stderr.contains("its home is devbox since"), "{command:?}: {output:?}");
        }
    }
    home.teamctl(["export", "survey", "--output", &home.path("out/x.tar").display().to_string()])
        .expect_success();
    home.teamctl(["delete", "survey", "--force"]).expect_success();
    // The new home keeps its team, its member and its tasks.
    assert_eq!(member_names(annex), ["team-lead", "ann"]);
    let tasks = annex.tasks("survey").into_iter();
    let subjects: BTreeSet<String> = tasks
        .filter(|task| task["metadata"]["_internal"].is_null())
        .map(|task| task["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(subjects, ["count", "go on"].map(str::to_owned).into());
    annex.teamctl(["shutdown", "ann"]).expect_success();
    annex.teamctl(["delete", "survey"]).expect_success();
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

/// The new home uses the old one as a host, which has changed the team without contact.
#[test]
fn work_at_the_old_home_is_kept_when_the_new_one_uses_it() {
    let hosts = TwoHosts::new();
    hosts.add_line_back();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    hosts.wait_for_exchange();
    hosts.cut();
    annex.wait_until("the annex notices that", || {
        (annex.teamctl(["home", "take", "survey", "--yes"]).code == 0).then_some(())
    });
    home.teamctl(["task", "create", "too late"]).expect_success();
    hosts.heal();
    home.wait_until("the old home is told", || {
        home.teamctl(["status"]).stdout.contains("the home is devbox since").then_some(())
    });
    assert!(find_task(home, "too late").is_some(), "nothing is overwritten yet");
    annex.teamctl(["spawn", "eve", "--host", "laptop", "--profile", "worker"]).expect_success();
    let event = home.wait_until("the copy is reported", || {
        home.events().into_iter().find(|event| event["event"] == "team_replaced")
    });
    assert!(find_task(home, "too late").is_none());
    let tasks = std::fs::read_dir(format!("{}/tasks/survey", event["copy"].as_str().unwrap())).unwrap();
    let texts = tasks.map(|task| std::fs::read_to_string(task.unwrap().path()).unwrap());
    assert!(texts.into_iter().any(|text| text.contains("too late")));
    annex.teamctl(["shutdown", "--all"]).expect_success();
    hosts.end_line_back();
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}
