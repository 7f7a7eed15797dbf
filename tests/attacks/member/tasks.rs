//! Tries to make a worker run a command of the attacker, repeat a command of the lead, or lose one.

use crate::attack_log::AttackLog;
use harness::{McpClient, MemberEnv, TestEnv};
use serde_json::{Value, json};

/// The tasks that the lead has created: one with a command that is completed, one with a command
/// that has failed, one with a command that waits for a task, and one without a command.
struct LeadTasks {
    completed: String,
    failed: String,
    waiting: String,
    plain: String,
}

fn create_task(env: &TestEnv, args: &[&str]) -> String {
    let output = env.teamctl_with(&[&["--json", "task", "create"], args].concat(), &[]);
    output.json()["task"]["id"].as_str().expect("the task is created").to_owned()
}

fn create_tasks(env: &TestEnv) -> LeadTasks {
    let completed = create_task(env, &["count", "--command", "echo run >>ran"]);
    let failed = create_task(env, &["fail", "--command", "echo failed >>ran; exit 1"]);
    let plain = create_task(env, &["think", "--owner", "team-lead"]);
    let waiting = create_task(env, &["later", "--command", "true", "--blocked-by", &plain]);
    env.wait_until("the worker has run both commands", || {
        let status = |id: &str| env.json(["task", "get", id])["task"].clone();
        let is_failed = status(&failed)["metadata"]["failure"].is_string();
        (status(&completed)["status"] == "completed" && is_failed).then_some(())
    });
    LeadTasks { completed, failed, waiting, plain }
}

/// Command lines that put a command of the attacker into a task. ID stands for a task without a
/// command, and EVIL for the command.
const PLANTED: [&[&str]; 9] = [
    &["create", "x", "--command", "EVIL"],
    &["create", "x", "--metadata", "{\"command\": \"EVIL\"}"],
    &["create", "x", "--metadata", "{\"\\u0063ommand\": \"EVIL\"}"],
    &["create", "x", "--metadata", "{\"command\": null, \"command\": \"EVIL\"}"],
    &["create", "x", "--metadata", "{\"_internal\": true, \"command\": \"EVIL\"}"],
    &["update", "ID", "--metadata", "{\"command\": \"EVIL\"}"],
    &["update", "ID", "--metadata", "{\"a\": 1, \"command\": \"EVIL\"}", "--owner", "ann"],
    &["update", "ID", "--metadata", "{\"command\": [\"EVIL\"]}"],
    &["update", "ID", "--metadata", "{\"command\": {\"command\": \"EVIL\"}}"],
];

/// Command lines that change, hide or remove a task with a command, or take it from the worker.
const CHANGES: [&[&str]; 13] = [
    &["update", "ID", "--metadata", "{\"command\": \"EVIL\"}"],
    &["update", "ID", "--metadata", "{\"command\": null}"],
    &["update", "ID", "--metadata", "{\"_internal\": true}"],
    &["update", "ID", "--subject", "x"],
    &["update", "ID", "--description", "x"],
    &["update", "ID", "--active-form", "x"],
    &["update", "ID", "--status", "in_progress", "--owner", "ann", "--description", "touch evil"],
    &["update", "ID", "--status", "pending", "--subject", "x"],
    &["update", "ID", "--status", "completed", "--description", "x"],
    &["update", "ID", "--status", "deleted"],
    &["delete", "ID"],
    &["delete", "ID", "--force"],
    &["update", "ID", "--owner", "ann", "--force"],
];

/// Command lines that start a task again which is completed or has failed.
const RESTARTS: [&[&str]; 6] = [
    &["update", "ID", "--status", "in_progress"],
    &["update", "ID", "--status", "in_progress", "--owner", "ann"],
    &["update", "ID", "--status", "pending"],
    &["update", "ID", "--metadata", "{\"failure\": null}", "--status", "pending"],
    &["update", "ID", "--owner", "eve"],
    &["release", "ID", "--force"],
];

/// Runs a command line about the task `id`, which must fail.
fn try_command(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv, line: &[&str], id: &str) {
    let evil = format!("touch {}", env.path("out/evil").display());
    let words: Vec<String> = line.iter().map(|word| word.replace("EVIL", &evil)).collect();
    let words = words.iter().map(|word| if word == "ID" { id } else { word.as_str() });
    let output = env.teamctl_as(eve, &["task"].into_iter().chain(words).collect::<Vec<_>>());
    log.record_command(format!("teamctl task {} ({id})", line.join(" ")), &output, &[64, 77]);
}

fn try_tool(log: &mut AttackLog, mcp: &mut McpClient, tool: &str, arguments: &Value) {
    log.record_tool(format!("MCP {tool} {arguments}"), mcp.call(tool, arguments));
}

fn attack_by_mcp(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv, tasks: &LeadTasks) {
    let mut mcp = env.mcp_as(eve);
    let command = json!({"command": format!("touch {}", env.path("out/evil").display())});
    try_tool(log, &mut mcp, "TaskCreate", &json!({"subject": "x", "metadata": command}));
    try_tool(log, &mut mcp, "TaskCreate", &json!({"subject": "x", "metadata": {"_internal": true}}));
    try_tool(log, &mut mcp, "TaskCreate", &json!({"subject": "x", "metadata": command.to_string()}));
    try_tool(log, &mut mcp, "TaskUpdate", &json!({"taskId": tasks.plain, "metadata": command}));
    for id in [&tasks.completed, &tasks.failed, &tasks.waiting] {
        for change in [
            json!({"metadata": command}),
            json!({"metadata": {"_internal": true}}),
            json!({"description": "x"}),
            json!({"subject": "x", "status": "in_progress"}),
            json!({"status": "deleted"}),
        ] {
            let mut arguments = change;
            arguments["taskId"] = json!(id);
            try_tool(log, &mut mcp, "TaskUpdate", &arguments);
        }
    }
    mcp.close();
}

/// Completes, deletes and renames the tasks that show which agents run.
fn attack_tracking_tasks(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    let all = env.json(["task", "list", "--all"])["tasks"].as_array().unwrap().clone();
    let tracking = all.iter().find(|task| task["subject"] == "ann").expect("ann has a tracking task");
    let id = tracking["id"].as_str().unwrap();
    for args in [
        &["done", id][..],
        &["delete", id],
        &["release", id],
        &["claim", id],
        &["update", id, "--subject", "x"],
    ] {
        let output = env.teamctl_as(eve, &[&["task"], args].concat());
        log.record_command(
            format!("teamctl task {} of ann's tracking task", args.join(" ")),
            &output,
            &[73, 76, 77],
        );
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    let env = TestEnv::with_team();
    let out = env.path("out").display().to_string();
    env.teamctl(["spawn", "ann", "--profile", "worker", "--cwd", &out]).expect_success();
    let eve = env.spawn_member("survey", "eve");
    let tasks = create_tasks(&env);
    PLANTED.iter().for_each(|line| try_command(log, &env, &eve, line, &tasks.plain));
    for id in [&tasks.completed, &tasks.failed, &tasks.waiting] {
        CHANGES.iter().for_each(|line| try_command(log, &env, &eve, line, id));
    }
    for id in [&tasks.completed, &tasks.failed] {
        RESTARTS.iter().for_each(|line| try_command(log, &env, &eve, line, id));
    }
    try_command(log, &env, &eve, &["release", "ID"], &tasks.failed);
    attack_by_mcp(log, &env, &eve, &tasks);
    attack_tracking_tasks(log, &env, &eve);
    // A worker takes the task with the lowest id first, so it has run all others before this one.
    create_task(&env, &["end", "--command", "touch end"]);
    env.wait_until("the worker has run the last command", || env.path("out/end").exists().then_some(()));
    let ran = (env.path("out/evil").exists(), env.read("out/ran"));
    log.record_state(
        "makes the worker run a command by one of these attacks; the commands run",
        ran,
        (false, "run\nfailed\n".to_owned()),
    );
    log.out_of_scope("writes a task file with a command", "members run as the same user");
    env.shut_down();
}
