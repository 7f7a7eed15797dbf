//! A member on another host, from its spawn to its end.

use super::{config_of, connect_words};
use harness::TestEnv;
use serde_json::{Value, json};

/// The hosts file, from the test's directory.
const HOSTS_FILE: &str = "home/.config/teamd/hosts.toml";

/// A home with the team `survey`, and the host `devbox`.
fn home_and_annex() -> (TestEnv, TestEnv) {
    let (home, annex) = (TestEnv::with_team(), TestEnv::with_daemon());
    home.write_file(HOSTS_FILE, format!("[host.devbox]\nconnect = {}\n", json!(connect_words(&annex))));
    (home, annex)
}

/// Waits until the task with this subject is completed.
fn wait_for_task(home: &TestEnv, subject: &str) -> Value {
    home.wait_until(&format!("{subject} is completed"), || {
        let mut tasks = home.tasks("survey").into_iter();
        tasks.find(|task| task["subject"] == subject && task["status"] == "completed")
    })
}

#[test]
fn member_on_another_host_works_gets_messages_and_ends() {
    let (home, annex) = home_and_annex();
    let marker = annex.path("out/worked");
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    // The member is listed here before the command returns.
    let members = config_of(&home).unwrap()["members"].as_array().unwrap().clone();
    let ann = members.iter().find(|member| member["name"] == "ann").unwrap();
    assert_eq!(ann["host"], json!("devbox"));
    let status = home.teamctl(["status"]).expect_success();
    assert!(status.lines().any(|line| line.starts_with("ann") && line.contains("devbox")), "{status}");
    assert!(annex.member("ann").is_some());

    let command = format!("echo done >>{}", marker.display());
    home.teamctl(["task", "create", "work there", "--command", &command]).expect_success();
    let done = wait_for_task(&home, "work there");
    assert_eq!(done["owner"], json!("ann"), "{done}");
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), "done\n");
    home.wait_until("the lead is told", || {
        let inbox = home.inbox("survey", "team-lead");
        inbox.iter().any(|message| message["from"] == "ann").then_some(())
    });

    home.teamctl(["shutdown", "ann"]).expect_success();
    let names = |env: &TestEnv| config_of(env).unwrap()["members"].to_string();
    assert!(!names(&home).contains("\"ann\"") && !names(&annex).contains("\"ann\""));
    assert!(annex.member("ann").is_none());
    home.shut_down();
    annex.shut_down();
}

#[test]
fn workers_of_two_hosts_do_each_task_once() {
    let (home, annex) = home_and_annex();
    let log = annex.path("out/log");
    for number in 1..=12 {
        let command = format!("echo {number} >>{}", log.display());
        home.teamctl(["task", "create", &format!("task {number}"), "--command", &command]).expect_success();
    }
    home.teamctl(["spawn", "ann", "--host", "devbox", "--profile", "worker"]).expect_success();
    home.wait_until("ann has a task", || {
        home.tasks("survey").iter().any(|task| task["owner"] == "ann").then_some(())
    });
    home.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    home.teamctl(["spawn", "amy", "--host", "devbox", "--profile", "worker"]).expect_success();
    (1..=12).for_each(|number| drop(wait_for_task(&home, &format!("task {number}"))));
    let mut done: Vec<u32> =
        std::fs::read_to_string(&log).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, (1..=12).collect::<Vec<_>>());
    let owners: Vec<Value> = home.tasks("survey").iter().map(|task| task["owner"].clone()).collect();
    assert!(owners.contains(&json!("ann")), "{owners:?}");
    let messages = annex.inbox("survey", "ann");
    let refusal = |message: &&Value| message["text"].as_str().unwrap().starts_with("cannot change task");
    assert_eq!(messages.iter().find(refusal), None, "a worker asks before it begins a task");
    home.shut_down();
    annex.shut_down();
}

/// A home with the team `survey` and one slot, and the host `devbox` with two slots and the label
/// `gpu`.
fn home_and_annex_with_slots() -> (TestEnv, TestEnv) {
    let (home, annex) = home_and_annex();
    let devbox = home.read(HOSTS_FILE);
    let hosts = format!("[host.home]\nlabels = ['desk']\nslots = 1\n{devbox}labels = ['gpu']\nslots = 2\n");
    home.write_file(HOSTS_FILE, hosts);
    (home, annex)
}

fn spawn_anywhere(home: &TestEnv, name: &str, more: &[&str]) -> harness::CommandOutput {
    let spawn = ["--json", "spawn", name, "--host", "any", "--profile", "worker"];
    home.teamctl_with(&[&spawn, more].concat(), &[])
}

#[test]
fn daemon_chooses_hosts_by_labels_and_free_slots() {
    let (home, annex) = home_and_annex_with_slots();
    for (name, needs, host) in
        [("ann", &["--needs", "gpu"][..], "devbox"), ("bob", &[], "home"), ("eve", &[], "devbox")]
    {
        let output = spawn_anywhere(&home, name, needs);
        assert_eq!(output.clone().json()["host"], json!(host), "{output:?}");
    }
    assert!(annex.member("ann").is_some() && home.member("bob").is_some());
    let error = spawn_anywhere(&home, "dan", &["--needs", "gpu"]).expect_failure(76);
    assert!(error.contains("home lacks gpu, devbox is full (2 of 2 slots)"), "{error}");
    // A new daemon knows the members from config.json.
    home.kill_process(home.daemon_pid());
    home.start_daemon();
    let error = spawn_anywhere(&home, "dan", &["--needs", "gpu"]).expect_failure(76);
    assert!(error.contains("devbox is full (2 of 2 slots)"), "{error}");
    home.teamctl(["shutdown", "ann"]).expect_success();
    assert_eq!(spawn_anywhere(&home, "dan", &[]).json()["host"], json!("devbox"));
    home.shut_down();
    annex.shut_down();
}

#[test]
fn commands_at_once_do_not_take_one_slot_twice() {
    let (home, annex) = home_and_annex_with_slots();
    let names = ["ann", "bob", "eve", "dan", "sue"];
    let outputs = std::thread::scope(|scope| {
        let threads = names.map(|name| scope.spawn(|| spawn_anywhere(&home, name, &[])));
        threads.map(|thread| thread.join().unwrap())
    });
    let mut hosts: Vec<String> = outputs
        .iter()
        .map(|output| output.clone().json()["host"].as_str().unwrap_or("none").to_owned())
        .collect();
    hosts.sort();
    assert_eq!(hosts, ["devbox", "devbox", "home", "none", "none"], "{outputs:?}");
    home.shut_down();
    annex.shut_down();
}

#[test]
fn restart_policy_worktree_and_suspension_work_on_the_other_host() {
    let (home, annex) = home_and_annex();
    let spawn = ["spawn", "ann", "--host", "devbox", "--restart", "on-failure", "--worktree", "--cwd"];
    let repo = annex.path("repo");
    std::fs::create_dir(&repo).unwrap();
    let script = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
    let git = std::process::Command::new("sh").args(["-c", script]).current_dir(&repo).output().unwrap();
    assert!(git.status.success(), "{git:?}");
    let program = ["--", "sleep", "1000"];
    home.teamctl_with(&[&spawn[..], &[&repo.display().to_string()], &program].concat(), &[]).expect_success();
    let pid = annex.member("ann").unwrap()["pid"].clone();
    annex.kill_process(u32::try_from(pid.as_u64().unwrap()).unwrap());
    let is_running = |env: &TestEnv| {
        let member = env.member("ann")?;
        (member["pid"] != pid && member["lifecycle"] == "running").then_some(())
    };
    annex.wait_until("its host has started it again", || is_running(&annex));
    let is_listed = || config_of(&home).unwrap()["members"].to_string().contains("\"ann\"");
    home.wait_until("the home lists it again", || is_listed().then_some(()));
    let error = home.teamctl(["merge", "ann"]).expect_failure(64);
    assert!(error.contains("no repository here is known for it"), "{error}");
    annex.teamctl(["down", "--suspend"]).expect_success();
    annex.teamctl(["up", "--resume"]).expect_success();
    annex.wait_until("it is resumed", || is_running(&annex));
    home.wait_until("the home lists it again", || is_listed().then_some(()));
    home.shut_down();
    annex.shut_down();
}
