//! What the shims of a record have done and a replay must repeat: their reports and the results of
//! tasks.
//!
//! In the replay, the daemon decides when a turn on a task begins, as it offers the task. A turn on
//! messages begins at its time in the record, because the shim alone decides when it delivers a
//! message.

use crate::simulator::turn_agent_state::TaskResult;
use protocol::control_socket::{Activity, TurnStatus};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, VecDeque};

/// The reports and results that the agents of a replay have not repeated yet.
#[derive(Debug, Default)]
pub(super) struct ReplayedAgents {
    pub(super) statuses: BTreeMap<MemberName, VecDeque<RecordedStatus>>,
    /// When each member starts its turns on messages, on the monotonic clock.
    pub(super) message_turns: BTreeMap<MemberName, VecDeque<u64>>,
    pub(super) results: BTreeMap<TaskId, VecDeque<TaskResult>>,
}

/// A report that a turn began or that the agent became idle.
#[derive(Debug)]
pub(super) struct RecordedStatus {
    /// When the shim claimed the task of the turn, on the monotonic clock. If the record has no
    /// such claim, this is the time at which the shim sent the report.
    pub(super) at: u64,
    pub(super) status: TurnStatus,
}

impl ReplayedAgents {
    /// Adds this number of milliseconds to all times. Until then, they count from the first line.
    pub(super) fn delay(&mut self, ms: u64) {
        self.statuses.values_mut().flatten().for_each(|recorded| recorded.at += ms);
        self.message_turns.values_mut().flatten().for_each(|start| *start += ms);
    }

    /// When this member next reports something in the record, and whether its agent is idle then.
    pub(super) fn next_report(&self, name: &MemberName) -> Option<(u64, Activity)> {
        self.statuses.get(name)?.front().map(|recorded| (recorded.at, recorded.status.activity))
    }

    /// The task that this member claims next, if its next report is that of a turn on a task.
    pub(super) fn next_claim(&self, name: &MemberName) -> Option<TaskId> {
        let status = &self.statuses.get(name)?.front()?.status;
        status.task().filter(|_| status.activity == Activity::Active)
    }

    /// When this member next starts a turn on messages.
    pub(super) fn next_message_turn(&self, name: &MemberName) -> Option<u64> {
        self.message_turns.get(name)?.front().copied()
    }

    /// Takes the next result of a task. `None` if the record has no further result of it.
    pub(super) fn take_result(&mut self, task: TaskId) -> Option<TaskResult> {
        self.results.get_mut(&task)?.pop_front()
    }

    /// Fills in what the program and the shim decided: session, usage, mode, and pauses.
    pub(super) fn complete_status(&mut self, name: &MemberName, status: &mut TurnStatus) {
        let recorded = self.statuses.get_mut(name).and_then(VecDeque::pop_front);
        let Some(RecordedStatus { status: recorded, .. }) = recorded else { return };
        (status.session_id, status.usage) = (recorded.session_id, recorded.usage);
        (status.mode, status.pause) = (recorded.mode, recorded.pause);
    }
}
