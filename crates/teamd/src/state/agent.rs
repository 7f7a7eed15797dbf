//! One supervised agent, and a session that leads a team.

use super::Phase;
use crate::event::ConnId;
use crate::roster::{Heard, Shared, SpawnId};
use protocol::control::{Activity, LeadProcess, TurnStatus};
use protocol::id::TaskId;
use protocol::member_request::MemberRequestKind;
use std::collections::BTreeSet;

/// One supervised agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) record: Shared,
    pub(crate) phase: Phase,
    pub(crate) activity: Activity,
    /// Since when the activity is what it is, ms since the epoch.
    pub(crate) since: u64,
    /// The subject of the task it has in progress.
    pub(crate) task: Option<String>,
    /// What its join says of its turns, where join runs them.
    pub(crate) turn: Option<TurnStatus>,
    /// It said itself whether it is in a turn.
    pub(crate) has_said: bool,
    /// What its client wrote of its activity when config.json was looked at last.
    pub(crate) wrote: Option<Activity>,
    /// It was woken for this task, and has not moved since.
    pub(crate) offered: Option<TaskId>,
    /// What it asks and somebody has to answer.
    pub(crate) asks: BTreeSet<MemberRequestKind>,
    /// What the hooks of its program have told.
    pub(crate) hooks: Hooks,
    /// When its life ends for the next at the latest, on the clock that never jumps.
    pub(crate) leaves_at: u64,
}

impl Agent {
    pub(crate) fn new(record: Shared, phase: Phase, since: u64) -> Agent {
        Agent {
            record,
            phase,
            activity: Activity::Active,
            since,
            task: None,
            turn: None,
            has_said: false,
            wrote: None,
            offered: None,
            asks: BTreeSet::new(),
            hooks: Hooks::default(),
            leaves_at: 0,
        }
    }
}

/// Hooks of one program.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// The connection of the one that waits for mail.
    pub(crate) parked: Option<ConnId>,
    /// Something may have come while none was parked: the next one is to look. So it is too while nobody knows.
    pub(crate) look: bool,
    /// The end of the turn has been told.
    pub(crate) ended: bool,
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks { parked: None, look: true, ended: false }
    }
}

/// A session that leads a team.
#[derive(Debug)]
pub(crate) struct Leading {
    pub(crate) lead: LeadProcess,
    /// What its process is watched by.
    pub(crate) life: SpawnId,
    /// When its turn began, ms since the epoch.
    pub(crate) since: u64,
    pub(crate) hooks: Hooks,
    /// What its hooks told. After a daemon's end the next that speaks is heard.
    pub(crate) heard: Heard,
}

impl Leading {
    pub(crate) fn new(lead: LeadProcess) -> Leading {
        Leading { lead, life: SpawnId::fresh(), since: 0, hooks: Hooks::default(), heard: Heard::default() }
    }
}
