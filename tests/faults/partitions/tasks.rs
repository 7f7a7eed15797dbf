//! Tasks whose commands write to one log. Both hosts are on this machine, so the log shows each run.

use harness::{TestEnv, TwoHosts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// How many tasks are created in each round.
const TASKS_OF_ROUND: u64 = 5;

/// How long all tasks may take after the last fault.
const WORK_TIMEOUT: Duration = Duration::from_secs(120);

/// The tasks that were created so far.
#[derive(Default)]
pub(super) struct Tasks {
    count: u64,
}

impl Tasks {
    /// Creates the tasks of one round, about three of four at the home.
    pub(super) fn create(&mut self, hosts: &TwoHosts, rng: &mut fastrand::Rng) {
        let log = hosts.home.path("out/log");
        for _ in 0..TASKS_OF_ROUND {
            let env = if rng.u8(0..4) == 0 { &hosts.annex } else { &hosts.home };
            // The task takes a moment, so that faults meet it while it runs.
            let command = format!("sleep 0.05; echo {} >>{}", self.count, log.display());
            let subject = format!("task {}", self.count);
            let create = ["-t", "survey", "task", "create", &subject, "--command", &command];
            env.teamctl_with(&create, &[]).expect_success();
            self.count += 1;
        }
    }

    /// Waits until all tasks are completed at both hosts, and checks that each ran once.
    pub(super) fn check(&self, hosts: &TwoHosts) {
        hosts.home.wait_until_within(WORK_TIMEOUT, "all tasks are completed at the home", || {
            let completed = task_rows(&hosts.home).into_iter().filter(|row| row[3] == "completed").count();
            (completed as u64 == self.count).then_some(())
        });
        hosts.wait_for_exchange();
        let at_home = task_rows(&hosts.home);
        let subjects: BTreeSet<&str> = at_home.iter().filter_map(|row| row[1].as_str()).collect();
        assert_eq!((subjects.len() as u64, at_home.len() as u64), (self.count, self.count), "{at_home:?}");
        hosts.annex.wait_until_within(WORK_TIMEOUT, "both hosts have the same tasks", || {
            (task_rows(&hosts.annex) == at_home).then_some(())
        });
        let mut runs: Vec<u64> =
            hosts.home.read("out/log").lines().map(|line| line.parse().unwrap()).collect();
        runs.sort_unstable();
        assert_eq!(runs, (0..self.count).collect::<Vec<_>>(), "each task runs once");
    }
}

/// Id, subject, owner and status of each task, in the order of the ids.
fn task_rows(env: &TestEnv) -> Vec<[Value; 4]> {
    let tasks = env.tasks("survey").into_iter().filter(|task| task["metadata"]["_internal"] != true);
    let mut rows: Vec<[Value; 4]> =
        tasks.map(|task| ["id", "subject", "owner", "status"].map(|key| task[key].clone())).collect();
    rows.sort_by_key(|row| row[0].as_str().and_then(|id| id.parse::<u64>().ok()));
    rows
}
