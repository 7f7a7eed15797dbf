//! One supervised agent, and a session that leads a team.

use crate::core::id::{ConnId, SpawnId};
use crate::core::roster::record::{HookState, SharedRecord};
use protocol::control::{Activity, LeadProcess, TurnStatus};
use protocol::id::TaskId;
use protocol::member_request::MemberRequestKind;
use std::collections::BTreeSet;

/// One supervised agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) record: SharedRecord,
    pub(crate) activity: Activity,
    /// Since when the activity is what it is, ms since the epoch.
    pub(crate) activity_since: u64,
    /// The subject of the task it has in progress.
    pub(crate) task_subject: Option<String>,
    /// What its join says of its turns, where join runs them.
    pub(crate) turn: Option<TurnStatus>,
    /// It said itself whether it is in a turn.
    pub(crate) has_reported_activity: bool,
    /// What its client wrote of its activity when config.json was looked at last.
    pub(crate) config_activity: Option<Activity>,
    /// It was woken for this task, and has not moved since.
    pub(crate) offered_task: Option<TaskId>,
    /// What it asks and somebody has to answer.
    pub(crate) open_requests: BTreeSet<MemberRequestKind>,
    /// What the hooks of its program have told.
    pub(crate) long_poll: LongPollState,
}

impl Agent {
    pub(crate) fn new(record: SharedRecord, since: u64) -> Agent {
        Agent {
            record,
            activity: Activity::Active,
            activity_since: since,
            task_subject: None,
            turn: None,
            has_reported_activity: false,
            config_activity: None,
            offered_task: None,
            open_requests: BTreeSet::new(),
            long_poll: LongPollState::default(),
        }
    }
}

/// Hooks of one program.
#[derive(Debug)]
pub(crate) struct LongPollState {
    /// The connection of the one that waits for mail.
    pub(crate) waiting: Option<ConnId>,
    /// Something may have come while none was parked: the next one is to look. So it is too while nobody knows.
    pub(crate) has_pending_check: bool,
    /// The end of the turn has been told.
    pub(crate) has_reported_turn_end: bool,
}

impl Default for LongPollState {
    fn default() -> LongPollState {
        LongPollState { waiting: None, has_pending_check: true, has_reported_turn_end: false }
    }
}

/// A session that leads a team.
#[derive(Debug)]
pub(crate) struct LeadSession {
    pub(crate) lead: LeadProcess,
    /// What its process is watched by.
    pub(crate) watch_id: SpawnId,
    /// When its turn began, ms since the epoch.
    pub(crate) turn_since: u64,
    pub(crate) long_poll: LongPollState,
    /// What its hooks told. After a daemon's end the next that speaks is heard.
    pub(crate) hook_state: HookState,
}

impl LeadSession {
    pub(crate) fn new(lead: LeadProcess) -> LeadSession {
        LeadSession {
            lead,
            watch_id: SpawnId::generate(),
            turn_since: 0,
            long_poll: LongPollState::default(),
            hook_state: HookState::default(),
        }
    }
}
