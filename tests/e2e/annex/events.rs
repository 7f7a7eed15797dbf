//! The events of a member on another host come into the event log of the home, and people are told
//! of them there.

use harness::{TestEnv, TwoHosts};
use serde_json::Value;

/// The events of ann that the home has from `devbox`, without what the home has added.
fn events_from_devbox(home: &TestEnv) -> Vec<Value> {
    let events = home.events().into_iter().filter(|event| event["on_host"] == "devbox");
    events
        .map(|mut event| {
            let logged_at = event.as_object_mut().unwrap().remove("logged_at").unwrap();
            assert!(logged_at.as_str() >= event["time"].as_str(), "{event}");
            event.as_object_mut().unwrap().remove("on_host");
            event
        })
        .collect()
}

/// The events that the annex sends to the home.
fn events_to_send(annex: &TestEnv) -> Vec<Value> {
    annex.events().into_iter().filter(|event| !event["number"].is_null()).collect()
}

/// Waits until the home has the events of the annex. Checks that it has each event once and in
/// order.
fn check_events(home: &TestEnv, annex: &TestEnv) {
    let sent = events_to_send(annex);
    home.wait_until("the home has the events", || {
        (events_from_devbox(home).len() >= sent.len()).then_some(())
    });
    let received = events_from_devbox(home);
    assert_eq!(received[..sent.len()], sent);
    assert!(events_to_send(annex).starts_with(&received), "each event is there once: {received:?}");
}

/// The kinds of the events of the member, without those of its inbox.
fn member_events(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().filter_map(|event| event["event"].as_str());
    kinds.filter(|kind| kind.starts_with("member_")).collect()
}

/// How many turns the log of the annex has.
fn begun_turns(annex: &TestEnv) -> usize {
    member_events(&events_to_send(annex)).iter().filter(|kind| **kind == "member_active").count()
}

/// Waits until the member is idle after this many turns.
fn wait_for_idle_after(annex: &TestEnv, turns: usize) {
    annex.wait_until("the member is idle", || {
        let is_idle = member_events(&events_to_send(annex)).last() == Some(&"member_idle");
        (is_idle && begun_turns(annex) >= turns).then_some(())
    });
}

fn work(hosts: &TwoHosts, subject: &str) {
    let turns = begun_turns(&hosts.annex);
    hosts.home.teamctl(["task", "create", subject, "--command", "true"]).expect_success();
    hosts.annex.wait_until(&format!("{subject} is completed"), || {
        let tasks = hosts.annex.tasks("survey");
        tasks.iter().any(|task| task["subject"] == subject && task["status"] == "completed").then_some(())
    });
    wait_for_idle_after(&hosts.annex, turns + 1);
}

#[test]
fn events_of_a_member_on_another_host_are_in_the_log_of_the_home() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    hosts.check(|| {
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
        wait_for_idle_after(annex, 0);
        work(&hosts, "first");
        check_events(home, annex);
        let events = events_from_devbox(home);
        let expected = ["member_spawned", "member_idle", "member_active", "member_idle"];
        assert_eq!(member_events(&events), expected);
        let text = home.teamctl(["events", "--member", "ann", "--kind", "member_active"]).expect_success();
        assert!(text.contains("ann@survey (devbox) active: "), "{text}");
        let completed = home.wait_until("the task is completed at the home", || {
            let events = home.events().into_iter();
            let completed: Vec<Value> = events.filter(|event| event["event"] == "task_completed").collect();
            (!completed.is_empty()).then_some(completed)
        });
        assert!(completed.len() == 1 && completed[0]["on_host"].is_null(), "{completed:?}");

        for killed in [home, annex] {
            killed.kill_process(killed.daemon_pid());
            killed.start_daemon();
            hosts.wait_for_exchange();
            work(&hosts, &format!("after {}", killed.daemon_pid()));
            check_events(home, annex);
        }
        hosts.kill_line();
        work(&hosts, "after the line broke");
        check_events(home, annex);
        home.wait_until("the report has all turns", || {
            home.teamctl(["report"]).expect_success().contains("ann: 4 turns").then_some(())
        });
    });
    hosts.home.shut_down();
    hosts.annex.shut_down();
}

#[test]
fn message_to_another_host_is_traced_there() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    annex.write_profile("reads", "delivery = 'turn'\nprogram = 'cat'\n");
    hosts.check(|| {
        home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "reads"]).expect_success();
        hosts.cut();
        home.teamctl(["send", "ann", "hello"]).expect_success();
        let text = home.teamctl(["trace", "last"]).expect_success();
        assert!(text.contains("  arrived   not yet on devbox"), "{text}");
        hosts.heal();
        // The reply can arrive before the events of the other host.
        let copy = home.wait_until("the message is read and replied to", || {
            let copy = home.json(["trace", "last"])["copies"][0].clone();
            let has_times = ["stored_on_host", "delivered", "read_at"].iter().all(|key| copy[key].is_u64());
            (copy["reply"].is_object() && has_times).then_some(copy)
        });
        let times = ["sent", "stored", "stored_on_host", "delivered"];
        let times = times.map(|key| copy[key].as_u64().unwrap_or_else(|| panic!("{key}: {copy}")));
        // A shim can deliver a message before its daemon has logged it.
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1] + 30_000), "{copy}");
        assert_eq!(copy["host"], "devbox");
        let text = home.teamctl(["trace", "last"]).expect_success();
        assert!(text.contains(" ago, on devbox\n"), "{text}");
        let report = home.teamctl(["report"]).expect_success();
        assert!(report.contains("ann: "), "{report}");
    });
    hosts.home.shut_down();
    hosts.annex.shut_down();
}

/// Lets the notification command of the environment append each notice to `out/told`.
fn write_notify_command(env: &TestEnv) {
    let out = env.path("out/told").display().to_string();
    let script = env.write_script("tell", &format!("#!/bin/sh\nprintf '%s\\n' \"$1\" >>{out}\n"));
    let config = format!("notify_command = ['{}', '{{text}}']\n", script.display());
    env.write_file("home/.config/teamd/config.toml", config);
}

fn notices(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.path("out/told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn people_are_told_at_the_home_once() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    [home, annex].into_iter().for_each(write_notify_command);
    hosts.check(|| {
        home.teamctl(["spawn", "ann", "--host", "devbox", "--", "sh", "-c", "read line; exit 3"])
            .expect_success();
        hosts.cut();
        let pid = annex.member("ann").unwrap()["pid"].as_u64().unwrap();
        annex.kill_process(u32::try_from(pid).unwrap());
        annex.wait_until("the exit is logged", || {
            events_to_send(annex).iter().any(|event| event["event"] == "member_exited").then_some(())
        });
        hosts.heal();
        check_events(home, annex);
        home.wait_until("a person is told", || (!notices(home).is_empty()).then_some(()));
        // A daemon that is killed before it has saved that the notice was shown shows it again. These
        // calls are handled after the save.
        home.teamctl(["create", "later"]).expect_success();
        home.teamctl(["delete", "later"]).expect_success();
        home.kill_process(home.daemon_pid());
        home.start_daemon();
        hosts.wait_for_exchange();
        assert_eq!(notices(home), ["ann@survey has ended: teamctl why ann -t survey"]);
        assert_eq!(notices(annex), [""; 0]);
        check_events(home, annex);
    });
    hosts.home.shut_down();
    hosts.annex.shut_down();
}
