//! The creators. Two of them run `teamctl task create`, three use the MCP server, and the others
//! call the `store` crate. MCP servers are sometimes killed while they create a task.

use super::{ClaimRound, TASKS_PER_CREATOR};
use harness::{McpClient, random_delay};
use protocol::team_and_member_names::MemberName;
use serde_json::{Value, json};
use store::NewTask;

/// Creates tasks. Returns the id and subject of each task whose creation was confirmed.
pub(super) fn run_creator(round: &ClaimRound, index: usize) -> Vec<(u64, String)> {
    let subjects = (0..TASKS_PER_CREATOR).map(|number| format!("t{index}:{number}"));
    match index {
        // The command line is slower, because each task starts a process.
        0 | 1 => subjects.take(8).map(|subject| (create_by_command(round, &subject), subject)).collect(),
        2..5 => create_by_server(round, index, subjects),
        _ => {
            let tasks = round.open_team().tasks();
            let create = |subject: String| {
                let task = tasks.create(NewTask::new(&subject, &MemberName::lead())).unwrap();
                (u64::from(task.id.number()), subject)
            };
            subjects.map(create).collect()
        }
    }
}

fn create_by_command(round: &ClaimRound, subject: &str) -> u64 {
    let output = round.env.teamctl(["-t", round.team.as_str(), "--json", "task", "create", subject]);
    created_id(&output.json())
}

fn create_by_server(
    round: &ClaimRound,
    index: usize,
    subjects: impl Iterator<Item = String>,
) -> Vec<(u64, String)> {
    let mut rng = round.rng(index);
    let connect = || McpClient::connect(round.env, &["--team", round.team.as_str()]);
    let (mut mcp, mut tasks) = (connect(), Vec::new());
    for subject in subjects {
        let task = json!({"subject": subject, "description": "none"});
        if rng.u32(0..25) == 0 {
            mcp.call_and_kill("TaskCreate", &task, || harness::sleep(random_delay(&mut rng)));
            mcp = connect();
        } else {
            tasks.push((created_id(&mcp.call("TaskCreate", &task).unwrap()), subject));
        }
    }
    mcp.close();
    tasks
}

fn created_id(reply: &Value) -> u64 {
    reply["task"]["id"].as_str().unwrap().parse().unwrap()
}
