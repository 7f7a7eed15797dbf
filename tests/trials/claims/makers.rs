//! Those who make tasks: two by the command line, three by the MCP server, the others by the library. A server is killed
//! now and then in the middle of it.

use super::{EACH, Round};
use harness::{Mcp, moment};
use protocol::name::AgentName;
use serde_json::{Value, json};
use store::NewTask;

/// Makes its share; what it was told that it made.
pub(super) fn makes(round: &Round, which: usize) -> Vec<(u64, String)> {
    let subjects = (0..EACH).map(|number| format!("t{which}:{number}"));
    match which {
        // A process for each takes its time.
        0 | 1 => subjects.take(8).map(|subject| (by_command(round, &subject), subject)).collect(),
        2..5 => by_server(round, which, subjects),
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

fn by_command(round: &Round, subject: &str) -> u64 {
    let ran = round.house.teamctl(["-t", round.team.as_str(), "--json", "task", "create", subject]);
    id(&ran.json())
}

fn by_server(round: &Round, which: usize, subjects: impl Iterator<Item = String>) -> Vec<(u64, String)> {
    let mut rng = round.rng(which);
    let server = || Mcp::of(round.house, &["--team", round.team.as_str()]);
    let (mut mcp, mut made) = (server(), Vec::new());
    for subject in subjects {
        let task = json!({"subject": subject, "description": "none"});
        if rng.u32(0..25) == 0 {
            mcp.kill_amid("TaskCreate", &task, moment(&mut rng));
            mcp = server();
        } else {
            made.push((id(&mcp.call("TaskCreate", &task).unwrap()), subject));
        }
    }
    mcp.end();
    made
}

fn id(said: &Value) -> u64 {
    said["task"]["id"].as_str().unwrap().parse().unwrap()
}
