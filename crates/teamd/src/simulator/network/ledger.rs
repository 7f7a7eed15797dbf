//! What people and agents have done in a simulation, and what they have seen. The invariants
//! compare the ledger with the files.

use crate::simulator::network::connections::HostIndex;
use std::collections::{BTreeMap, BTreeSet};

/// One start of a task's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskStart {
    pub(super) member: String,
    pub(super) host: HostIndex,
    pub(super) shim_pid: u32,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The texts that were sent, by sender and recipient, in order.
    pub(super) sent: BTreeMap<(String, String), Vec<String>>,
    /// The subjects of the tasks that were created.
    pub(super) created: BTreeSet<String>,
    /// The starts of each task's command, by the task's subject.
    pub(super) starts: BTreeMap<String, Vec<TaskStart>>,
    /// The members of annexes that the config of the home lists, each with the time of its spawn in
    /// milliseconds since the epoch.
    pub(super) listed: BTreeMap<String, u64>,
    last_number: u64,
    /// What has occurred, for the check that the seeds cover it.
    pub(super) coverage: BTreeSet<&'static str>,
}

impl Ledger {
    /// A number for a new text.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn cover(&mut self, what: &'static str) {
        self.coverage.insert(what);
    }

    /// Records that an agent begins to work on a task. Panics if the agent has begun the task
    /// before, or if another member has. Only a later agent of the same member may begin the task
    /// again.
    pub(super) fn start_task(&mut self, subject: &str, start: TaskStart) {
        self.cover("task begun");
        let starts = self.starts.entry(subject.to_owned()).or_default();
        starts.push(start.clone());
        let is_twice = starts.iter().any(|other| other.member != start.member)
            || starts.iter().filter(|other| **other == start).count() > 1;
        assert!(!is_twice, "the task {subject:?} was begun by {starts:?}");
    }
}
