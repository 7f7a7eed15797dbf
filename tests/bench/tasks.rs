//! The task list: looked at, fought over, and what its steps take inside one process.

use crate::{env_with_team, median, print_row, time_call};
use harness::TestEnv;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Puts `count` pending tasks into the list, each waiting for the one before where `chained` says so.
fn create_tasks(env: &TestEnv, count: usize, chained: TaskShape) {
    for id in 1..=count {
        let link = |there: bool, id: usize| if there { format!("\"{id}\"") } else { String::new() };
        let (blocks, blocked_by) = match chained {
            TaskShape::Chain => (link(id < count, id + 1), link(id > 1, id - 1)),
            TaskShape::Independent => Default::default(),
        };
        let text = format!(
            "{{\n  \"id\": \"{id}\",\n  \"subject\": \"work on part {id} of the whole\",\n  \
             \"description\": \"what to do, and how to see that it is done\",\n  \"status\": \"pending\",\n  \
             \"blocks\": [{blocks}],\n  \"blockedBy\": [{blocked_by}]\n}}"
        );
        let path = env.root().join(format!("tasks/bench/{id}.json"));
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }
}

#[derive(Clone, Copy)]
enum TaskShape {
    Chain,
    Independent,
}

/// The whole process, its output into a pipe.
pub(crate) fn measure_list() {
    let env = env_with_team();
    create_tasks(&env, 5000, TaskShape::Chain);
    let list =
        || time_call(|| assert_eq!(env.teamctl(["task", "list"]).expect_success().lines().count(), 5001));
    let took = median((0..20).map(|_| list()).collect());
    print_row(
        "`task list` of 5,000 in a chain, whole process, median of 20",
        &format!("{took:.1?}"),
        "50 ms",
    );
    env.shut_down();
}

/// Each claim is a process of its own, started by one of sixteen loops.
pub(crate) fn measure_claims() {
    let env = env_with_team();
    create_tasks(&env, 200, TaskShape::Independent);
    let script = "while teamctl --json task claim; do :; done";
    let mut claimed: Vec<String> = Vec::new();
    let took = time_call(|| {
        let start = || {
            let mut command = env.command("sh");
            command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let running: Vec<Child> = (0..16).map(|_| start()).collect();
        for child in running {
            let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            let told: Vec<serde_json::Value> =
                output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            claimed.extend(told.iter().filter_map(|told| Some(told["task"]["id"].as_str()?.to_owned())));
        }
    });
    let count = claimed.len();
    claimed.sort();
    claimed.dedup();
    print_row(
        "200 tasks claimed by 16 processes at once, each claim a process of its own",
        &format!("{count} claims of {} tasks in {took:.0?}", claimed.len()),
        "200 of 200",
    );
    env.shut_down();
}

/// The rows that need the store itself, which this package must not know.
pub(crate) fn measure_store() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--release", "-p", "teamd-store", "--example", "compare"]);
    let ran = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(ran.success(), "the store's figures do not come to an end");
}
