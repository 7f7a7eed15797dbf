//! The members and tasks of the run file, and functions that start and observe the run.

use harness::TestEnv;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command};

/// The built-in workers.
pub(super) const WORKERS: [&str; 3] = ["wes", "wil", "wim"];
/// An ACP program that plans.
pub(super) const PLANNER: &str = "pat";
/// The members of three makes that work on a branch each: first programs that run once for each turn, then two
/// programs with hooks in panes, and an ACP program.
pub(super) const WORKTREE_MEMBERS: [&str; 8] = ["ann", "bob", "cat", "dan", "eve", "fay", "gil", "hal"];
/// The member without a restart policy: the end of its tmux server suspends it.
pub(super) const UNRESTARTED: &str = "wim";

/// The tasks: key, owner (empty: any member) and blockers. The task `bad` fails until `out/mended` exists. All
/// tasks that are held wait for `b1`, so that only the turn of bob hangs in the evening.
pub(super) const TASKS: [(&str, &str, &[&str]); 20] = [
    ("a1", "ann", &[]),
    ("a2", "ann", &["a1"]),
    ("a3", "ann", &["a2", "b1"]),
    ("b1", "bob", &[]),
    ("c1", "cat", &["b1"]),
    ("c2", "cat", &["c1"]),
    ("d1", "dan", &[]),
    ("e1", "eve", &[]),
    ("f1", "fay", &["b1"]),
    ("f2", "fay", &["f1"]),
    ("g1", "gil", &[]),
    ("g2", "gil", &["g1", "c1"]),
    ("h1", "hal", &["b1"]),
    ("h2", "hal", &["h1"]),
    ("w1", "wes", &["c1"]),
    ("bad", "wil", &[]),
    ("after-bad", "wil", &["bad"]),
    ("m1", "wim", &["b1"]),
    ("plan", "pat", &[]),
    ("q1", "", &[]),
];

/// The tasks whose commands or turns block until [`release`].
pub(super) const HELD_TASKS: [&str; 11] = ["a3", "b1", "c1", "c2", "f1", "f2", "g2", "h1", "h2", "m1", "w1"];

pub(super) fn run_file(env: &TestEnv) -> String {
    let (repo, work) = (env.path("repo"), env.path("work"));
    let policy = "[policy]\nretries = 1\ngrace = '10s'\nexchange_turns_per_hour = 4\n";
    let agents = WORKTREE_MEMBERS.map(|name| member(name, &agent_keys(name))).concat();
    let workers = WORKERS.map(|name| member(name, worker_keys(name))).concat();
    let planner = member(PLANNER, "profile = 'planner'\nmode = 'plan'\nrestart = 'on-failure'");
    let tasks: String = TASKS.iter().map(|task| task_table(task, &work)).collect();
    format!("name = 'night'\ncwd = '{}'\n{policy}{agents}{workers}{planner}{tasks}", repo.display())
}

fn member(name: &str, keys: &str) -> String {
    format!("[[member]]\nname = '{name}'\n{keys}\n")
}

fn agent_keys(name: &str) -> String {
    let keys = match name {
        "dan" => "profile = 'turn'\nenv = { PEER = 'eve' }",
        "eve" => "profile = 'turn'\nenv = { PEER = 'dan' }",
        "fay" | "gil" => "profile = 'hooked'\nprompt = 'begin'",
        "hal" => "profile = 'acp'",
        _ => "profile = 'turn'",
    };
    format!("{keys}\nrestart = 'on-failure'\nworktree = true")
}

fn worker_keys(name: &str) -> &'static str {
    match name {
        "wil" => "profile = 'worker'\nrestart = 'on-failure'\nbackend = 'in-process'",
        UNRESTARTED => "profile = 'worker'",
        _ => "profile = 'worker'\nrestart = 'on-failure'",
    }
}

fn task_table((key, owner, blockers): &(&str, &str, &[&str]), work: &Path) -> String {
    let owner_line = if owner.is_empty() { String::new() } else { format!("owner = '{owner}'\n") };
    let does_work = WORKERS.contains(owner) || owner.is_empty();
    let command = if does_work { format!("command = '{} {key}'\n", work.display()) } else { String::new() };
    let dialog = work.with_file_name("out").join("dialog");
    let description = match *key {
        "g1" => format!("description = 'notify hold:{}'\n", dialog.display()),
        _ => String::new(),
    };
    let lines = format!("{owner_line}{command}{description}");
    format!("[[task]]\nkey = '{key}'\nsubject = 'do {key}'\n{lines}blocked_by = {blockers:?}\n")
}

/// Starts `teamctl run` on the run file. Its output goes to `out/run`.
pub(super) fn start_run(env: &TestEnv, options: &[&str]) -> Child {
    let mut command = env.command(harness::programs().join("teamctl"));
    command.arg("run").arg(env.path("night.toml")).args(options);
    start_with_output(env, command)
}

/// Types a command that teamd printed, in a shell inside tmux. Its output goes to `out/run`.
pub(super) fn start_printed_command(env: &TestEnv, printed: &str) -> Child {
    start_with_output(env, shell(env, printed))
}

/// Types a command that teamd printed, in a shell inside tmux, and waits for its success.
pub(super) fn run_printed_command(env: &TestEnv, printed: &str) {
    let output = shell(env, printed).output().unwrap();
    assert!(output.status.success(), "{printed}: {output:?}");
}

fn shell(env: &TestEnv, line: &str) -> Command {
    let mut command = env.command("sh");
    command.args(["-c", line]).env("TMUX", format!("{},0,0", env.tmux_socket().display()));
    command
}

fn start_with_output(env: &TestEnv, mut command: Command) -> Child {
    env.write_file("out/run", "");
    let output = std::fs::File::options().append(true).open(env.path("out/run")).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
}

/// Runs git in the repository, and returns its output.
pub(super) fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command("git").current_dir(env.path("repo")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Waits until the task is held. `times` is how often it was held so far.
pub(super) fn wait_until_held(env: &TestEnv, key: &str, times: usize) {
    let file = format!("out/held-{key}");
    env.wait_until(&format!("{key} is held"), || (env.read(&file).lines().count() == times).then_some(()));
}

/// Lets further attempts at the task pass.
pub(super) fn stop_holding(env: &TestEnv, key: &str) {
    std::fs::remove_file(env.path(&format!("out/hold-{key}"))).unwrap();
}

/// Lets the current attempt at the task and further ones pass.
pub(super) fn release(env: &TestEnv, key: &str) {
    stop_holding(env, key);
    env.open_gate(&format!("out/gate-{key}"));
}

/// The entry of the team in `teamctl status`. `None` if no daemon replies.
pub(super) fn team_status(env: &TestEnv) -> Option<Value> {
    let output = env.teamctl(["--json", "status"]);
    (output.code == 0).then(|| output.json()["teams"][0].clone())
}

/// The entry of a running member in `teamctl status`. `None` if no daemon replies.
pub(super) fn running_member(env: &TestEnv, name: &str) -> Option<Value> {
    let team = team_status(env)?;
    let members = team["members"].as_array()?;
    members.iter().find(|member| member["name"] == name && member["lifecycle"] == "running").cloned()
}
