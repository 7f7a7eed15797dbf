//! Those who make tasks: two by the command line, three by the MCP server, the others by the library. A server is killed
//! now and then in the middle of it.

use super::{ClaimRound, TASKS_PER_ROUND};
use harness::{McpClient, random_delay};
use protocol::name::AgentName;
use serde_json::{Value, json};
use store::NewTask;

/// Makes its share; what it was told that it made.
pub(super) fn run_creator(round: &ClaimRound, which: usize) -> Vec<(u64, String)> {
    let subjects = (0..TASKS_PER_ROUND).map(|number| format!("t{which}:{number}"));
    match which {
        // A process for each takes its time.
        0 | 1 => subjects.take(8).map(|subject| (create_by_command(round, &subject), subject)).collect(),
        2..5 => create_by_server(round, which, subjects),
        _ => {
            let tasks = round.open().tasks();
            let make = |subject: String| {
                let task = tasks.create(NewTask::new(&subject, &AgentName::lead())).unwrap();
                (u64::from(task.id.number()), subject)
            };
            subjects.map(make).collect()
        }
    }
}

fn create_by_command(round: &ClaimRound, subject: &str) -> u64 {
    let ran = round.env.teamctl(["-t", round.team.as_str(), "--json", "task", "create", subject]);
    created_id(&ran.json())
}

fn create_by_server(
    round: &ClaimRound,
    which: usize,
    subjects: impl Iterator<Item = String>,
) -> Vec<(u64, String)> {
    let mut rng = round.rng(which);
    let server = || McpClient::connect(round.env, &["--team", round.team.as_str()]);
    let (mut mcp, mut made) = (server(), Vec::new());
    for subject in subjects {
        let task = json!({"subject": subject, "description": "none"});
        if rng.u32(0..25) == 0 {
            mcp.call_and_kill("TaskCreate", &task, random_delay(&mut rng));
            mcp = server();
        } else {
            made.push((created_id(&mcp.call("TaskCreate", &task).unwrap()), subject));
        }
    }
    mcp.close();
    made
}

fn created_id(said: &Value) -> u64 {
    said["task"]["id"].as_str().unwrap().parse().unwrap()
}
