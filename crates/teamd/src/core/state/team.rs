//! One team: what its files said as last, what is being looked at, and what its members ask.

use crate::core::jobs::files::{NextTaskQuery, TaskSelection};
use crate::core::roster::{MemberWorktree, TeamUsage};
use crate::core::state::event_log_cursor::{LoggedRequests, LoggedTask};
use crate::core::state::task_board::TaskBoard;
use protocol::control::{Layout, PastMember};
use protocol::id::{RequestId, TaskId};
use protocol::name::AgentName;
use protocol::policy::{AnsweredBy, Policy};
use std::collections::{BTreeMap, BTreeSet};
use store::OpenRequest;

/// One team of ours.
#[derive(Debug, Default)]
pub(crate) struct TeamState {
    /// How many teammates ever joined: decides the next colour.
    pub(crate) joined_count: u64,
    /// A look at the tasks is under way / another is wanted after it.
    pub(crate) task_scan: ScanState,
    /// What the next look is to take in.
    pub(crate) unscanned_tasks: TaskSelection,
    /// The same for inboxes, by the name of the file.
    pub(crate) inbox_scans: BTreeMap<String, ScanState>,
    /// The same for its config.
    pub(crate) config_scan: ScanState,
    /// Who is told after the next look which of them comes next.
    pub(crate) next_task_queries: Vec<NextTaskQuery>,
    /// The tasks as the last look found them.
    pub(crate) task_board: TaskBoard,
    /// Why the last look could not be had, as that was told.
    pub(crate) task_scan_error: Option<String>,
    /// The tasks as the event log has told them.
    pub(crate) logged_tasks: BTreeMap<TaskId, LoggedTask>,
    /// Members whose life has ended, the latest last.
    pub(crate) past_members: Vec<PastMember>,
    /// The worktrees of its members, of those that have ended too.
    pub(crate) worktrees: Vec<MemberWorktree>,
    /// Names that are taken by a worktree that is made, or was made just now.
    pub(crate) reserved_names: BTreeMap<AgentName, NameReservation>,
    /// It is being deleted, from the accepted request to its end or failure: nobody is started meanwhile.
    pub(crate) deletion: Option<Deletion>,
    /// Of its windows.
    pub(crate) layout: Layout,
    /// Who answers what its members ask.
    pub(crate) policy: Policy,
    /// A look at what they ask is under way / another is wanted after it.
    pub(crate) request_scan: ScanState,
    /// What they ask and nobody has answered, by who and under which id.
    pub(crate) open_requests: BTreeMap<(AgentName, RequestId), TrackedRequest>,
    /// The last look at it came to nothing: the next rescan looks again, whatever is known.
    pub(crate) is_request_scan_needed: bool,
    /// Whose next plan waits for a person, whatever the policy's time-out: nobody has answered the last two.
    pub(crate) unanswered_planners: BTreeSet<AgentName>,
    /// What the event log has told of it.
    pub(crate) logged_requests: LoggedRequests,
    /// What it has used up.
    pub(crate) usage: TeamUsage,
    /// When its time is over, on `crate::event::Now::mono`.
    pub(crate) time_limit_at: Option<u64>,
}

/// How far a delete is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// Its members live: it is seen whether anything would refuse it.
    Checking,
    /// These lived, and are ended for it.
    EndingMembers(Vec<String>),
}

/// How far the way from a worktree to its agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameReservation {
    /// Git is at work.
    Creating,
    /// It is there, and its agent is to be started until then, on `crate::event::Now::mono`.
    ReservedUntil(u64),
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct TrackedRequest {
    pub(crate) request: Box<OpenRequest>,
    pub(crate) stage: RequestStage,
}

impl TeamState {
    /// Its board is as the files are, as far as anybody was told.
    pub(crate) fn is_task_scan_current(&self) -> bool {
        self.task_scan == ScanState::Idle && self.unscanned_tasks.is_empty()
    }
}

impl TrackedRequest {
    pub(crate) fn deadline(&self) -> Option<u64> {
        match self.stage {
            RequestStage::Waiting { until } => until,
            RequestStage::Answering(_) | RequestStage::WriteFailed => None,
        }
    }
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestStage {
    /// Somebody is to answer; at `until`, on the daemon's own clock, the policy does.
    Waiting { until: Option<u64> },
    /// The policy's answer is being written.
    Answering(GivenAnswer),
    /// It could not be: again at the next look.
    WriteFailed,
}

/// An answer, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenAnswer {
    pub(crate) by: AnsweredBy,
    pub(crate) is_approved: bool,
}

/// Collapses a storm of changes into at most two looks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanState {
    /// Nothing under way.
    #[default]
    Idle,
    /// A look is under way.
    Running,
    /// Something changed since it began.
    RunningRescanNeeded,
}

impl ScanState {
    /// Whether one is to begin now; else the one under way is followed by another.
    pub(crate) fn try_start(&mut self) -> bool {
        let due = *self == ScanState::Idle;
        *self = if due { ScanState::Running } else { ScanState::RunningRescanNeeded };
        due
    }
}
