//! What a replay knows about the shims of a record: what they reported, and the results of tasks.
//!
//! A shim decides by itself when it delivers a message to its agent. So a replayed agent has turns
//! on messages when it had them in the record. It has turns on tasks when the daemon offers tasks.

use crate::simulator::simulation::Simulation;
use protocol::control_socket::TurnStatus;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// The reports and results that the agents of a replay have not repeated yet.
#[derive(Debug, Default)]
pub(in crate::simulator) struct ReplayedAgents {
    pub(super) statuses: BTreeMap<MemberName, VecDeque<RecordedStatus>>,
    /// When each member starts its turns on messages, on the monotonic clock.
    pub(super) message_turns: BTreeMap<MemberName, VecDeque<u64>>,
    pub(super) results: BTreeMap<TaskId, VecDeque<TaskResult>>,
}

/// A report that a turn began or that the agent became idle.
#[derive(Debug)]
pub(super) struct RecordedStatus {
    /// When the shim claimed the task of the turn, or else when it sent the report, on the
    /// monotonic clock.
    pub(super) at: u64,
    pub(super) status: TurnStatus,
}

/// How the work on a task ended.
#[derive(Debug)]
pub(in crate::simulator) struct TaskResult {
    pub(in crate::simulator) status: TaskStatus,
    pub(in crate::simulator) metadata: Option<Map<String, Value>>,
}

impl ReplayedAgents {
    /// Adds this number of milliseconds to all times. Before, they are counted from the first line.
    pub(super) fn delay(&mut self, ms: u64) {
        self.statuses.values_mut().flatten().for_each(|recorded| recorded.at += ms);
        self.message_turns.values_mut().flatten().for_each(|start| *start += ms);
    }

    /// When this member next reports something in the record.
    pub(super) fn next_report(&self, name: &MemberName) -> Option<u64> {
        self.statuses.get(name)?.front().map(|recorded| recorded.at)
    }

    /// When this member next starts a turn on messages.
    pub(super) fn next_message_turn(&self, name: &MemberName) -> Option<u64> {
        self.message_turns.get(name)?.front().copied()
    }

    /// Takes the result of a task. `None` if the record has no further one.
    pub(in crate::simulator) fn take_result(&mut self, task: TaskId) -> Option<TaskResult> {
        self.results.get_mut(&task)?.pop_front()
    }

    /// Fills in what the program and the shim decided: session, usage, mode, and pauses.
    fn complete_status(&mut self, name: &MemberName, status: &mut TurnStatus) {
        let recorded = self.statuses.get_mut(name).and_then(VecDeque::pop_front);
        let Some(RecordedStatus { status: recorded, .. }) = recorded else { return };
        (status.session_id, status.usage) = (recorded.session_id, recorded.usage);
        (status.mode, status.pause) = (recorded.mode, recorded.pause);
    }
}

impl Simulation {
    /// Whether an agent may start a turn on a message now.
    pub(in crate::simulator) fn may_take_message(&self, name: &MemberName) -> bool {
        let Some(replayed) = &self.replayed else { return true };
        replayed.next_message_turn(name).is_some_and(|start| start <= self.now.mono)
    }

    /// In a replay, completes a status that a shim reports by what the record says.
    pub(in crate::simulator) fn complete_replayed_status(
        &mut self,
        name: &MemberName,
        status: &mut TurnStatus,
    ) {
        if let Some(replayed) = &mut self.replayed {
            replayed.complete_status(name, status);
        }
    }
}
