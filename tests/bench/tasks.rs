//! Measures the task list: `teamctl task list`, many concurrent claims, and the store's own
//! figures.

use crate::{env_with_team, median, print_row, time_call};
use harness::TestEnv;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Creates `count` pending tasks in the list of the team.
fn create_tasks(env: &TestEnv, count: usize, shape: TaskShape) {
    for id in 1..=count {
        let link = |exists: bool, id: usize| if exists { format!("\"{id}\"") } else { String::new() };
        let (blocks, blocked_by) = match shape {
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

/// How the created tasks depend on each other.
#[derive(Clone, Copy)]
enum TaskShape {
    /// Each task is blocked by the one before it.
    Chain,
    Independent,
}

/// Measures `teamctl task list` as a whole process with its output in a pipe.
pub(crate) fn measure_list() {
    let env = env_with_team();
    create_tasks(&env, 5000, TaskShape::Chain);
    let time_list =
        || time_call(|| assert_eq!(env.teamctl(["task", "list"]).expect_success().lines().count(), 5001));
    let duration = median((0..20).map(|_| time_list()).collect());
    print_row(
        "`task list` of 5,000 in a chain, whole process, median of 20",
        &format!("{duration:.1?}"),
        "50 ms",
    );
    env.shut_down();
}

/// Measures how long sixteen shell loops take to claim all tasks. Each claim is its own process.
pub(crate) fn measure_claims() {
    let env = env_with_team();
    create_tasks(&env, 200, TaskShape::Independent);
    let script = "while teamctl --json task claim; do :; done";
    let mut claimed_ids: Vec<String> = Vec::new();
    let duration = time_call(|| {
        let start_loop = || {
            let mut command = env.command("sh");
            command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let loops: Vec<Child> = (0..16).map(|_| start_loop()).collect();
        for child in loops {
            let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            let claims: Vec<serde_json::Value> =
                output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            claimed_ids
                .extend(claims.iter().filter_map(|claim| Some(claim["task"]["id"].as_str()?.to_owned())));
        }
    });
    let count = claimed_ids.len();
    claimed_ids.sort();
    claimed_ids.dedup();
    print_row(
        "200 tasks claimed by 16 processes at once, each claim a process of its own",
        &format!("{count} claims of {} tasks in {duration:.0?}", claimed_ids.len()),
        "200 of 200",
    );
    env.shut_down();
}

/// Runs an example of the store that prints more rows. This package can't measure them itself,
/// because its programs must not depend on the store.
pub(crate) fn measure_store() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--release", "-p", "teamd-store", "--example", "compare"]);
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(status.success(), "the store's example failed");
}
