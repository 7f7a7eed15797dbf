//! The home of a team moves to another host, as planned, and back.

use super::config_of;
use harness::{SmallDisk, TIMEOUT, TaggedProcesses, TestEnv, TwoHosts, record_skip};
use serde_json::{Value, json};

fn subjects(env: &TestEnv) -> Vec<String> {
    let tasks = env.tasks("survey").into_iter();
    let tasks = tasks.filter(|task| task["metadata"]["_internal"].is_null());
    tasks.map(|task| task["subject"].as_str().unwrap().to_owned()).collect()
}

fn texts_to_lead(env: &TestEnv) -> Vec<String> {
    let inbox = env.inbox("survey", "team-lead").into_iter();
    inbox.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Whether this host is the home. The command fails in any case.
fn is_home(env: &TestEnv) -> bool {
    env.teamctl(["home", "move", "survey", "nowhere"]).stderr.contains("nowhere")
}

fn wait_until_done(env: &TestEnv, subject: &str) {
    env.wait_until("the task is done", || {
        let tasks = env.tasks("survey");
        let task = tasks.iter().find(|task| task["subject"] == subject)?;
        (task["status"] == "completed" && task["owner"] == "ann").then_some(())
    });
}

fn pid_of_ann(annex: &TestEnv) -> Value {
    annex.member("ann").unwrap()["pid"].clone()
}

fn status(env: &TestEnv) -> String {
    env.teamctl(["status"]).stdout
}

#[test]
fn home_moves_with_tasks_messages_and_policy_and_moves_back() {
    let hosts = TwoHosts::new();
    hosts.add_line_back();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.write_file("out/policy.toml", "[policy]\nmax_turns = 50\n");
    home.teamctl(["policy", &home.path("out/policy.toml").display().to_string()]).expect_success();
    home.teamctl(["task", "create", "before", "--command", "true"]).expect_success();
    wait_until_done(home, "before");
    home.teamctl(["send", "team-lead", "note of the lead"]).expect_success();
    let pid = pid_of_ann(annex);

    let output = home.teamctl(["home", "move", "survey", "devbox"]).expect_success();
    assert!(output.contains("The home of survey is devbox now."), "{output}");
    assert_eq!(pid_of_ann(annex), pid, "ann goes on running");
    assert!(subjects(annex).contains(&"before".to_owned()));
    assert!(texts_to_lead(annex).contains(&"note of the lead".to_owned()));
    assert!(annex.teamctl(["policy"]).expect_success().contains("50"));
    annex.teamctl(["task", "create", "after", "--command", "true"]).expect_success();
    wait_until_done(annex, "after");
    let old = status(home);
    assert!(old.contains("the home is devbox since") && !old.contains("running"), "{old}");
    assert!(!status(annex).contains("the home is"));
    let error = home.teamctl(["task", "create", "x"]).expect_failure(76);
    assert!(error.contains("its home is devbox since"), "{error}");
    let error = home.teamctl(["home", "move", "survey", "devbox"]).expect_failure(76);
    assert!(error.contains("its home is devbox since"), "{error}");

    let error = home.teamctl(["home", "take", "survey", "--yes"]).expect_failure(76);
    assert!(error.contains("its home is devbox since"), "{error}");

    // ann runs at the home now, so it cannot move before ann ends.
    let error = annex.teamctl(["home", "move", "survey", "laptop"]).expect_failure(76);
    assert!(
        error.contains("run elsewhere: ann") && error.contains("teamctl shutdown -t survey ann"),
        "{error}"
    );
    annex.teamctl(["shutdown", "ann"]).expect_success();
    annex.teamctl(["home", "move", "survey", "laptop"]).expect_success();
    assert!(subjects(home).contains(&"after".to_owned()));
    home.teamctl(["task", "create", "back"]).expect_success();
    assert!(status(annex).contains("the home is laptop since"));
    annex.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(config_of(home).is_some());
    home.teamctl(["delete", "survey"]).expect_success();
    hosts.end_line_back();
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

#[test]
fn home_moves_only_with_contact_and_only_from_here() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    let error = home.teamctl(["home", "move", "survey", "nowhere"]);
    assert!(error.code != 0 && error.stderr.contains("nowhere"), "{error:?}");
    home.teamctl(["spawn", "bob", "--", "sleep", "1000"]).expect_success();
    let error = home.teamctl(["home", "move", "survey", "devbox"]).expect_failure(76);
    assert!(error.contains("run elsewhere: bob"), "{error}");
    let error = annex.teamctl(["home", "move", "survey", "devbox"]).expect_failure(76);
    assert!(error.contains("its home is another machine"), "{error}");
    home.teamctl(["kill", "bob"]).expect_success();
    hosts.cut();
    home.wait_until("the loss is noticed", || {
        (!hosts.contact()["contact"]["no_contact"].is_null()).then_some(())
    });
    let output = home.teamctl(["home", "move", "survey", "devbox"]);
    assert!(output.code != 0 && output.stderr.contains("cannot reach devbox"), "{output:?}");
    home.teamctl(["task", "create", "still here"]).expect_success();
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

/// Two moves at once: one of them moves the home.
#[test]
fn one_of_two_moves_at_once_is_refused() {
    let hosts = TwoHosts::new();
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    let request = json!({"move_home": {"team": "survey", "host": "devbox"}});
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let calls = [(); 2].map(|()| scope.spawn(|| home.call_daemon(None, &request)));
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(replies.iter().any(|reply| reply["done"] == "ack"), "{replies:?}");
    let refused = replies.iter().find(|reply| reply["done"] != "ack").expect("one is refused").to_string();
    assert!(
        refused.contains("its home moves to devbox") || refused.contains("its home is devbox"),
        "{refused}"
    );
    annex.teamctl(["task", "create", "go on", "--command", "true"]).expect_success();
    wait_until_done(annex, "go on");
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

/// Kills the daemon of one host at a step of a move. Afterwards one host is the home, with
/// everything.
fn kill_at_step(select: fn(&TwoHosts) -> &TestEnv, failpoint: &str) -> bool {
    let mut hosts = TwoHosts::new();
    for env in [&mut hosts.home, &mut hosts.annex] {
        let directory = env.path("crash").display().to_string();
        std::fs::create_dir_all(&directory).unwrap();
        env.kill_process(env.daemon_pid());
        env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &directory]);
        env.variables.push(("TEAMD_FAILPOINTS".to_owned(), directory));
        env.start_daemon();
    }
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.teamctl(["task", "create", "before", "--command", "true"]).expect_success();
    wait_until_done(home, "before");
    let killed = select(&hosts);
    killed.write_file("crash/hits", "");
    killed.write_file("crash/armed", format!("kill teamd {failpoint}\n"));
    let daemon = TaggedProcesses::single(killed.daemon_pid());
    let output = home.teamctl(["home", "move", "survey", "devbox"]);
    assert!(daemon.exit_within(TIMEOUT), "the daemon was not killed: {output:?}");
    killed.write_file("crash/armed", "");
    killed.start_daemon();
    annex.wait_until("one host is the home", || (is_home(home) != is_home(annex)).then_some(()));
    let has_moved = is_home(annex);
    let new = if has_moved { annex } else { home };
    assert_eq!(subjects(new), ["before"], "{output:?}");
    new.teamctl(["task", "create", "after", "--command", "true"]).expect_success();
    wait_until_done(new, "after");
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
    has_moved
}

fn home_of(hosts: &TwoHosts) -> &TestEnv {
    &hosts.home
}

#[test]
fn home_daemon_is_killed_before_the_offer() {
    for failpoint in ["home.step 1", "home.step-done 1", "home.step 2"] {
        assert!(!kill_at_step(home_of, failpoint), "{failpoint}");
    }
}

#[test]
fn home_daemon_is_killed_after_the_offer() {
    for failpoint in ["home.step-done 2", "home.step 3", "home.step-done 3"] {
        assert!(kill_at_step(home_of, failpoint), "{failpoint}");
    }
}

#[test]
fn daemon_of_the_new_home_is_killed() {
    for failpoint in ["home.step 1", "home.step-done 1"] {
        assert!(kill_at_step(|hosts| &hosts.annex, failpoint), "{failpoint}");
    }
}

/// Fills the disk of one host, and moves the home. Returns the error. Afterwards, one host is the
/// home, with everything.
fn move_with_full_disk(hosts: &TwoHosts, disk: &SmallDisk) -> String {
    let (home, annex) = (&hosts.home, &hosts.annex);
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.teamctl(["task", "create", "before", "--command", "true"]).expect_success();
    wait_until_done(home, "before");
    disk.fill();
    let output = home.teamctl(["home", "move", "survey", "devbox"]);
    disk.free();
    home.wait_until("the move is decided", || (is_home(home) != is_home(annex)).then_some(()));
    hosts.wait_for_contact();
    home.wait_until("the home moves once the disk has space", || {
        (is_home(annex) || home.teamctl(["home", "move", "survey", "devbox"]).code == 0).then_some(())
    });
    assert_eq!(subjects(annex), ["before"], "{output:?}");
    annex.teamctl(["task", "create", "after", "--command", "true"]).expect_success();
    wait_until_done(annex, "after");
    output.stderr
}

#[test]
fn full_disk_of_the_home_refuses_a_move() {
    let Some(disk) = SmallDisk::mount(16) else {
        return record_skip("home-move-full-disk", "no right to mount a small file system");
    };
    let home = TestEnv::in_directory(disk.path());
    home.start_daemon();
    home.teamctl(["create", "survey"]).expect_success();
    let hosts = TwoHosts::with_environments(home, TestEnv::with_daemon());
    let error = move_with_full_disk(&hosts, &disk);
    assert!(error.contains("No space left on device"), "{error}");
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

#[test]
fn full_disk_of_the_host_refuses_a_move() {
    let Some(disk) = SmallDisk::mount(16) else {
        return record_skip("home-move-full-disk", "no right to mount a small file system");
    };
    let annex = TestEnv::in_directory(disk.path());
    annex.start_daemon();
    let hosts = TwoHosts::with_environments(TestEnv::with_team(), annex);
    let error = move_with_full_disk(&hosts, &disk);
    assert!(error.contains("No space left on device"), "{error}");
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}
