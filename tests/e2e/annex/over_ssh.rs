//! A member on a host that is reached by a real ssh connection, from its spawn to its end.

use harness::{HomeAndSshHost, TaggedProcesses, TestEnv, files_below};
use serde_json::{Value, json};
use std::path::Path;

/// The messages in an inbox of the other host.
fn inbox_there(env: &TestEnv, name: &str) -> Vec<Value> {
    let text = env.read(&format!("{}/teams/survey/inboxes/{name}.json", HomeAndSshHost::FAR_ROOT));
    serde_json::from_str(&text).unwrap_or_default()
}

fn wait_for_message(env: &TestEnv, inbox: impl Fn() -> Vec<Value>, from: &str, text: &str) {
    env.wait_until(&format!("{text:?} from {from} is in the inbox"), || {
        inbox().iter().any(|message| message["from"] == from && message["text"] == text).then_some(())
    });
}

/// The paths below `directory` that contain the name of the team.
fn files_of_team(directory: &Path) -> Vec<String> {
    let files = files_below(directory)
        .into_iter()
        .filter_map(|path| Some(path.strip_prefix(directory).ok()?.display().to_string()));
    files.filter(|path| path.split('/').any(|part| part.contains("survey"))).collect()
}

#[test]
fn member_over_ssh_works_and_leaves_nothing_there() {
    let Some(hosts) = HomeAndSshHost::start() else { return };
    let env = &hosts.env;
    env.teamctl(["spawn", "ann", "--host", "far", "--profile", "worker"]).expect_success();
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.lines().any(|line| line.starts_with("ann") && line.contains("far")), "{status}");
    // The program of this task sends a message to the lead.
    let command = "echo I am at $HOME; teamctl send team-lead hello-from-there";
    env.teamctl(["task", "create", "look", "--command", command]).expect_success();
    let task = env.wait_until("the task is completed", || {
        env.tasks("survey").into_iter().find(|task| task["status"] == "completed")
    });
    assert_eq!(task["owner"], json!("ann"), "{task}");
    wait_for_message(env, || env.inbox("survey", "team-lead"), "ann", "hello-from-there");
    env.teamctl(["send", "ann", "hello from here"]).expect_success();
    wait_for_message(env, || inbox_there(env, "ann"), "team-lead", "hello from here");
    env.wait_until("the home knows that ann has read it", || {
        let inbox = env.inbox("survey", "ann");
        let message = inbox.iter().find(|message| message["text"] == "hello from here");
        message.is_some_and(|message| message["read"] == true).then_some(())
    });
    // Commands about the member run there.
    let home_there = env.path("far/home").display().to_string();
    let output = env.teamctl(["capture", "ann"]).expect_success();
    assert!(output.contains(&format!("I am at {home_there}")), "{output}");
    let output = env.teamctl(["logs", "ann"]).expect_success();
    assert!(output.contains(&format!("I am at {home_there}")), "{output}");
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.wait_until("no shim is left there", || {
        let processes = TaggedProcesses::with_tag(&hosts.tag_of_processes_there()).list();
        (!processes.iter().any(|line| line.contains("teamd-shim"))).then_some(())
    });
    assert!(!env.read_config()["members"].to_string().contains("\"ann\""));
    env.teamctl(["delete", "survey"]).expect_success();
    env.wait_until("the other host has no file of the team, except logs of its members", || {
        let state = files_of_team(&env.path("far/state"));
        let is_left = |path: &&String| !path.contains("/logs/agents/");
        (state.iter().find(is_left).is_none()
            && files_of_team(&env.path(HomeAndSshHost::FAR_ROOT)).is_empty())
        .then_some(())
    });
    assert_eq!(files_of_team(&env.path("state")), Vec::<String>::new());
    // The home would connect again, and so start the daemon again that ends.
    env.teamctl(["down"]).expect_success();
    env.teamctl(["--host", "far", "down"]).expect_success();
    let left = TaggedProcesses::with_tag(&hosts.tag_of_processes_there());
    assert!(left.exit_within(harness::TIMEOUT), "{:?}", left.list());
    let HomeAndSshHost { env, server } = hosts;
    drop(server);
    env.shut_down();
}
