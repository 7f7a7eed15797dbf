//! One team: what its files said as last, what is being looked at, and what its members ask.

use super::Board;
use crate::event::ConnId;
use crate::files::Which;
use crate::roster::{Ground, Spent};
use crate::tale::{RequestTale, TaskTale};
use protocol::control::{Layout, NextTaskRequest, PastMember};
use protocol::id::{RequestId, TaskId};
use protocol::name::AgentName;
use protocol::policy::{AnsweredBy, Policy};
use std::collections::{BTreeMap, BTreeSet};
use store::OpenRequest;

/// One team of ours.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// How many teammates ever joined: decides the next colour.
    pub(crate) joined: u64,
    /// A look at the tasks is under way / another is wanted after it.
    pub(crate) looking: Look,
    /// What the next look is to take in.
    pub(crate) unseen: Which,
    /// The same for inboxes, by the name of the file.
    pub(crate) reading: BTreeMap<String, Look>,
    /// The same for its config.
    pub(crate) checking: Look,
    /// Who is told after the next look which of them comes next.
    pub(crate) asks: Vec<(ConnId, NextTaskRequest)>,
    /// The tasks as the last look found them.
    pub(crate) board: Board,
    /// Why the last look could not be had, as that was told.
    pub(crate) trouble: Option<String>,
    /// The tasks as the event log has told them.
    pub(crate) told: BTreeMap<TaskId, TaskTale>,
    /// Members whose life has ended, the latest last.
    pub(crate) past: Vec<PastMember>,
    /// The worktrees of its members, of those that have ended too.
    pub(crate) grounds: Vec<Ground>,
    /// Names that are taken by a worktree that is made, or was made just now.
    pub(crate) held: BTreeMap<AgentName, Held>,
    /// It is being deleted, from the accepted request to its end or failure: nobody is started meanwhile.
    pub(crate) deleting: Option<Deleting>,
    /// Of its windows.
    pub(crate) layout: Layout,
    /// Who answers what its members ask.
    pub(crate) policy: Policy,
    /// A look at what they ask is under way / another is wanted after it.
    pub(crate) asking: Look,
    /// What they ask and nobody has answered, by who and under which id.
    pub(crate) asked: BTreeMap<(AgentName, RequestId), Pending>,
    /// The last look at it came to nothing: the next rescan looks again, whatever is known.
    pub(crate) unseen_asked: bool,
    /// Whose next plan waits for a person, whatever the policy's time-out: nobody has answered the last two.
    pub(crate) overlooked: BTreeSet<AgentName>,
    /// What the event log has told of it.
    pub(crate) told_asked: RequestTale,
    /// What it has used up.
    pub(crate) spent: Spent,
    /// When its time is over, on [`crate::event::Now::mono`].
    pub(crate) spent_at: Option<u64>,
}

/// How far a delete is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deleting {
    /// Its members live: it is seen whether anything would refuse it.
    Looking,
    /// These lived, and are ended for it.
    Ending(Vec<String>),
}

/// How far the way from a worktree to its agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Git is at work.
    Making,
    /// It is there, and its agent is to be started until then, on [`crate::event::Now::mono`].
    Until(u64),
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Box<OpenRequest>,
    pub(crate) stage: Asking,
}

impl Team {
    /// Its board is as the files are, as far as anybody was told.
    pub(crate) fn is_seen(&self) -> bool {
        self.looking == Look::Rest && self.unseen.is_none()
    }
}

impl Pending {
    pub(crate) fn until(&self) -> Option<u64> {
        match self.stage {
            Asking::Waits { until } => until,
            Asking::Answering(_) | Asking::Failed => None,
        }
    }
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Somebody is to answer; at `until`, on the daemon's own clock, the policy does.
    Waits { until: Option<u64> },
    /// The policy's answer is being written.
    Answering(Given),
    /// It could not be: again at the next look.
    Failed,
}

/// An answer, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) by: AnsweredBy,
    pub(crate) approved: bool,
}

/// Collapses a storm of changes into at most two looks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing under way.
    #[default]
    Rest,
    /// A look is under way.
    Looking,
    /// Something changed since it began.
    Again,
}

impl Look {
    /// Whether one is to begin now; else the one under way is followed by another.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = *self == Look::Rest;
        *self = if due { Look::Looking } else { Look::Again };
        due
    }
}
