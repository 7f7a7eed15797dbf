//! A whole team from a file: it ends by itself, whatever is killed in the middle, and says truly how.

mod budgets;
mod crashes;
mod examples;
mod interrupt;
mod invalid_file;
mod keep_team;
mod outcomes;

use harness::{CommandOutput, TestEnv};
use serde_json::Value;
use std::io::Read;
use std::process::Child;

/// A team of workers on tasks that each add their key to `out/log`.
struct RunFileBuilder {
    workers: Vec<&'static str>,
    policy: &'static str,
    tasks: String,
}

fn run_file<const N: usize>(workers: [&'static str; N]) -> RunFileBuilder {
    RunFileBuilder { workers: workers.to_vec(), policy: "", tasks: String::new() }
}

impl RunFileBuilder {
    /// A task that notes its key, then does `then`; `more` are further lines of it.
    fn task(mut self, key: &str, then: &str, more: &str) -> RunFileBuilder {
        let command = format!("echo {key} >> out/log; {then}");
        self.tasks.push_str(&format!(
            "[[task]]\nkey = {key:?}\nsubject = \"do {key}\"\ncommand = '''{command}'''\n{more}\n"
        ));
        self
    }

    fn policy(mut self, policy: &'static str) -> RunFileBuilder {
        self.policy = policy;
        self
    }

    /// Writes it into the environment; the file's name is a word for the command line.
    fn write_run_file(&self, env: &TestEnv) -> String {
        let member = |name: &&str| format!("[[member]]\nname = {name:?}\nprofile = \"worker\"\n");
        let members: String = self.workers.iter().map(member).collect();
        env.write_file(
            "team.toml",
            format!("name = \"survey\"\n[policy]\n{}\n{members}{}", self.policy, self.tasks),
        )
    }
}

/// Keys in the order in which their commands began.
fn started_tasks(env: &TestEnv) -> Vec<String> {
    env.read("out/log").lines().map(str::to_owned).collect()
}

fn sorted_started_tasks(env: &TestEnv) -> Vec<String> {
    let mut all = started_tasks(env);
    all.sort();
    all
}

/// Outcome and reason of each task, by key.
fn outcomes(result: &Value) -> Vec<String> {
    let one = |task: &Value| {
        let why = task["reason"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {}{why}", task["key"].as_str().unwrap_or("-"), task["outcome"].as_str().unwrap())
    };
    result["tasks"].as_array().unwrap().iter().map(one).collect()
}

/// `teamctl run …` in the middle.
fn start_run(env: &TestEnv, file: &str, more: &[&str]) -> Child {
    let mut command = env.command(harness::programs().join("teamctl"));
    command.args(["run", file]).args(more);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

/// How it ended and what it said.
fn finish_run(mut child: Child) -> CommandOutput {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code().unwrap_or(-1);
    CommandOutput { command: "run".to_owned(), code, stdout, stderr }
}

/// For a run that starts a daemon: on the environment's server, as in a pane of it.
fn tmux_variable(env: &TestEnv) -> String {
    format!("{},0,0", env.tmux_socket().display())
}

fn assert_team_deleted(env: &TestEnv) {
    assert!(!env.path("root/teams/survey").exists(), "{}", env.dump_state());
    assert!(!env.path("root/tasks/survey").exists(), "{}", env.dump_state());
}

/// A command that says that it has begun, and goes on when the test says so; once it has, it is never held again.
const HELD: &str = "[ -e out/go ] || { echo $$ > out/held; read _ < out/gate; }";

/// A run in the middle: a command of its is held.
fn run_until_blocked(env: &TestEnv, file: &str, more: &[&str]) -> Child {
    env.create_gate("out/gate");
    let run = start_run(env, file, more);
    wait_until_blocked(env);
    run
}

fn wait_until_blocked(env: &TestEnv) {
    env.wait_until("the command has begun", || env.read("out/held").ends_with('\n').then_some(()));
}

/// Lets the command that is held go on.
fn unblock(env: &TestEnv) {
    env.write_file("out/go", "");
    env.open_gate("out/gate");
}
