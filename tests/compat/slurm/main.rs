//! Tests the example of Slurm, examples/hosts/slurm, with a real cluster. `scripts/test-slurm` runs
//! this program. Without it the test is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that cannot continue must stop")]

use harness::{TaggedProcesses, TestEnv, record_skip, run_command};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The jobs, and the nodes on which they run. Job, host and member have the same name.
const JOBS: [(&str, &str); 2] = [("gpu1", "node2"), ("gpu2", "node3")];

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/hosts/slurm")
}

/// A home with the team `survey`, and a host for each job. `None` if there is no cluster.
fn home() -> Option<TestEnv> {
    // A user of Slurm has SLURM_CONF too. Their cluster gets no jobs of this test.
    let is_wanted = std::env::var_os("TEAMD_TEST_SLURM").is_some();
    let Some(conf) = std::env::var("SLURM_CONF").ok().filter(|_| is_wanted) else {
        record_skip("slurm", "scripts/test-slurm runs this test");
        return None;
    };
    let mut env = TestEnv::with_team();
    // The daemon does not get this variable from `teamctl`.
    let variable = format!("SLURM_CONF={conf}");
    env.variables.push(("SLURM_CONF".to_owned(), conf));
    let connect = example().join("connect").display().to_string();
    let line = |job: &str| format!("connect = {}", json!(["env", variable, connect, job]));
    let hosts: String = JOBS.iter().map(|(job, _)| format!("[host.{job}]\n{}\n", line(job))).collect();
    env.write_file("home/.config/teamd/hosts.toml", hosts);
    Some(env)
}

/// Runs a program of Slurm in the directory of the example. Returns its output.
fn slurm(env: &TestEnv, words: &[&str]) -> String {
    let mut command = env.command(words[0]);
    command.args(&words[1..]).current_dir(example());
    run_command(command).expect_success()
}

/// A job of the example. Dropping it removes its directory, which is left only if the test fails.
struct Job<'a> {
    env: &'a TestEnv,
    name: &'static str,
    directory: PathBuf,
}

impl<'a> Job<'a> {
    /// Starts a job, and waits until its daemon replies.
    fn place(env: &'a TestEnv, name: &'static str, node: &str) -> Job<'a> {
        let output = env.path(&format!("out/{name}")).display().to_string();
        let options = ["--parsable", "--job-name", name, "--nodelist", node, "--output", &output];
        let id = slurm(env, &[&["sbatch"], &options[..], &["place.sbatch"]].concat());
        let user = rustix::process::getuid().as_raw();
        let job = Job { env, name, directory: format!("/tmp/teamd-{user}-{}", id.trim()).into() };
        env.wait_until("the daemon of the job replies", || {
            (env.teamctl(["--host", name, "status"]).code == 0).then_some(())
        });
        assert!(job.directory.is_dir());
        job
    }

    /// Cancels the job, and waits until no process and no file of it is left.
    fn cancel(self) {
        slurm(self.env, &["scancel", "--name", self.name]);
        self.env.wait_until_within(Duration::from_secs(60), "the job has ended", || {
            let list = ["squeue", "--noheader", "--name", self.name];
            slurm(self.env, &list).trim().is_empty().then_some(())
        });
        let left = TaggedProcesses::with_tag(&format!("SLURM_JOB_NAME={}", self.name));
        assert!(left.exit_within(Duration::from_secs(10)), "{:?}", left.list());
        assert!(!self.directory.exists(), "{}", self.env.read(&format!("out/{}", self.name)));
    }
}

impl Drop for Job<'_> {
    #[allow(clippy::disallowed_methods, reason = "the directory is not below the root")]
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

fn messages_from(env: &TestEnv, name: &str) -> Vec<Value> {
    let inbox = env.inbox("survey", "team-lead").into_iter();
    inbox.filter(|message| message["from"] == name).map(|message| message["text"].clone()).collect()
}

#[test]
fn members_in_allocations_work_and_leave_nothing() {
    let Some(env) = home() else { return };
    let jobs = JOBS.map(|(job, node)| Job::place(&env, job, node));
    for (job, node) in JOBS {
        env.teamctl(["spawn", job, "--host", job, "--profile", "worker"]).expect_success();
        let command = "teamctl send team-lead \"hello from $SLURMD_NODENAME\"";
        env.teamctl(["task", "create", "greet", "--owner", job, "--command", command]).expect_success();
        let text = json!(format!("hello from {node}"));
        env.wait_until("the lead has the message", || {
            (messages_from(&env, job).iter().filter(|it| **it == text).count() == 1).then_some(())
        });
        env.teamctl(["send", job, "hello to you"]).expect_success();
        env.wait_until("the member has read the message", || {
            env.inbox("survey", job)
                .iter()
                .any(|it| it["text"] == "hello to you" && it["read"] == true)
                .then_some(())
        });
    }
    env.teamctl(["shutdown", "--all"]).expect_success();
    env.teamctl(["delete", "survey"]).expect_success();
    jobs.into_iter().for_each(Job::cancel);
    env.shut_down();
}

#[test]
fn cancelled_allocation_is_a_host_without_contact() {
    let Some(env) = home() else { return };
    let (job, node) = ("gpu1", "node1");
    let placed = Job::place(&env, job, node);
    env.teamctl(["spawn", job, "--host", job, "--profile", "worker"]).expect_success();
    placed.cancel();
    env.wait_until("status shows no contact", || {
        let status = env.teamctl(["status"]).expect_success();
        status.contains(&format!("host {job}: no contact for ")).then_some(())
    });
    let output = env.teamctl(["--host", job, "status"]);
    assert!(output.code == 75 && output.stderr.contains("no job gpu1 of yours runs"), "{output:?}");
    // A new job of the same name lacks the files of the first one.
    let placed = Job::place(&env, job, node);
    env.wait_until("the new job is refused", || {
        let status = env.teamctl(["status"]).expect_success();
        status.contains("a file was lost or is old").then_some(())
    });
    placed.cancel();
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}
