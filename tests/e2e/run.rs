//! Checks `teamctl run`: it starts a team from a run file, waits until the tasks are done, reports
//! their outcomes and deletes the team, also when processes are killed meanwhile.

mod budgets;
mod crashes;
mod examples;
mod interrupt;
mod invalid_file;
mod keep_team;
mod once_members;
mod outcomes;

use harness::{CommandOutput, TestEnv};
use serde_json::Value;
use std::io::Read;
use std::process::Child;

/// Builds the run file of a team of workers. The command of each task appends its key to `out/log`.
struct RunFileBuilder {
    workers: Vec<&'static str>,
    policy: &'static str,
    tasks: String,
}

fn run_file<const N: usize>(workers: [&'static str; N]) -> RunFileBuilder {
    RunFileBuilder { workers: workers.to_vec(), policy: "", tasks: String::new() }
}

impl RunFileBuilder {
    /// Adds a task that appends its key to `out/log` and then runs `command`. `more` are further
    /// TOML lines of the task.
    fn task(mut self, key: &str, command: &str, more: &str) -> RunFileBuilder {
        let script = format!("echo {key} >> out/log; {command}");
        self.tasks.push_str(&format!(
            "[[task]]\nkey = {key:?}\nsubject = \"do {key}\"\ncommand = '''{script}'''\n{more}\n"
        ));
        self
    }

    fn policy(mut self, policy: &'static str) -> RunFileBuilder {
        self.policy = policy;
        self
    }

    /// Writes the run file and returns its path.
    fn write_run_file(&self, env: &TestEnv) -> String {
        let member = |name: &&str| format!("[[member]]\nname = {name:?}\nprofile = \"worker\"\n");
        let members: String = self.workers.iter().map(member).collect();
        env.write_file(
            "team.toml",
            format!("name = \"survey\"\n[policy]\n{}\n{members}{}", self.policy, self.tasks),
        )
    }
}

/// The keys of all started commands, in the order of their start.
fn started_tasks(env: &TestEnv) -> Vec<String> {
    env.read("out/log").lines().map(str::to_owned).collect()
}

fn sorted_started_tasks(env: &TestEnv) -> Vec<String> {
    let mut all = started_tasks(env);
    all.sort();
    all
}

/// Key, outcome and reason of each task in the JSON result of a run.
fn outcomes(result: &Value) -> Vec<String> {
    let describe = |task: &Value| {
        let reason = task["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} {}{reason}", task["key"].as_str().unwrap_or("-"), task["outcome"].as_str().unwrap())
    };
    result["tasks"].as_array().unwrap().iter().map(describe).collect()
}

/// Starts `teamctl run` with the options `more` and does not wait for its end.
fn start_run(env: &TestEnv, file: &str, more: &[&str]) -> Child {
    let mut command = env.command(harness::programs().join("teamctl"));
    command.args(["run", file]).args(more);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for the end of a run and returns its exit code and output.
fn finish_run(mut child: Child) -> CommandOutput {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code().unwrap_or(-1);
    CommandOutput { command: "run".to_owned(), code, stdout, stderr }
}

/// The value of `TMUX` for a run that starts a daemon on the tmux server of the environment.
fn tmux_variable(env: &TestEnv) -> String {
    format!("{},0,0", env.tmux_socket().display())
}

fn assert_team_deleted(env: &TestEnv) {
    assert!(!env.path("root/teams/survey").exists(), "{}", env.dump_state());
    assert!(!env.path("root/tasks/survey").exists(), "{}", env.dump_state());
}

/// A command that writes its pid to `out/held` and blocks until [`unblock`]. It does not block
/// while `out/go` exists.
const BLOCKING_COMMAND: &str = "[ -e out/go ] || { echo $$ > out/held; read _ < out/gate; }";

/// Starts a run and waits until its blocking command has started.
fn run_until_blocked(env: &TestEnv, file: &str, more: &[&str]) -> Child {
    env.create_gate("out/gate");
    let run = start_run(env, file, more);
    wait_until_blocked(env);
    run
}

fn wait_until_blocked(env: &TestEnv) {
    env.wait_until("the blocking command has started", || env.read("out/held").ends_with('\n').then_some(()));
}

/// Lets the blocking command continue.
fn unblock(env: &TestEnv) {
    env.write_file("out/go", "");
    env.open_gate("out/gate");
}
