//! What it takes to start a member again: after a failure, after its plan, or on another day.

use protocol::control::{LaunchArgv, SpawnRequest};
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::PlanStage;
use protocol::usage::{Usage, UsageReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A member's order, and what its lives have come to.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Comeback {
    /// On disk without its environment, which may hold secrets: that lies in the file `env`.
    #[serde(serialize_with = "without_environment")]
    pub(crate) order: Box<SpawnRequest>,
    /// The file of its environment, below `env` of the state directory.
    #[serde(default)]
    pub(crate) env: String,
    /// When its lives failed, ms since the epoch; those that count, the latest last.
    pub(crate) failures: Vec<u64>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// The session that its program had, for a next life to go on with.
    pub(crate) session: Option<String>,
    /// What it has used up in all its lives, as far as its program tells.
    #[serde(default)]
    pub(crate) tally: Tally,
    /// The mode that it was in; none: the one of its order.
    #[serde(default)]
    pub(crate) mode: Option<PermissionMode>,
    /// How far it was with its plan, while that was not approved.
    #[serde(default)]
    pub(crate) plan: Option<PlanStage>,
    /// A plan of its was approved.
    #[serde(default)]
    pub(crate) plan_approved: bool,
    /// The mode of that approval, where its lives have to begin in it.
    #[serde(default)]
    pub(crate) approved: Option<PermissionMode>,
}

impl Comeback {
    /// Of a member that lives for the first time.
    pub(crate) fn of(order: &SpawnRequest) -> Comeback {
        let order = Box::new(order.clone());
        let (mode, plan, plan_approved) = (None, None, false);
        Comeback {
            order,
            env: String::new(),
            failures: Vec::new(),
            restarts: 0,
            session: None,
            tally: Tally::default(),
            mode,
            plan,
            plan_approved,
            approved: None,
        }
    }

    /// What the lives after the approval of its plan are started with.
    pub(crate) fn approved_life(&self) -> Option<&LaunchArgv> {
        self.order.approved.get(self.approved?.as_str())
    }
}

fn without_environment<S: serde::Serializer>(order: &SpawnRequest, serializer: S) -> Result<S::Ok, S::Error> {
    without_env(order).serialize(serializer)
}

fn without_env(order: &SpawnRequest) -> SpawnRequest {
    SpawnRequest { env: BTreeMap::new(), ..order.clone() }
}

/// As many sessions of a member are told apart; a person goes from one to the other and back.
const SESSIONS: usize = 8;

/// What a member has used up, and up to where its program's reports are in that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tally {
    pub(crate) used: Usage,
    /// The most that each of the last sessions, or lives, has told, the latest last.
    told: Vec<UsageReport>,
}

impl Tally {
    /// Takes in what is new in the report, and gives that: programs tell the same again, and so do joins that come back.
    pub(crate) fn take_in(&mut self, report: UsageReport) -> Usage {
        let known = self.told.iter().position(|told| told.session_id == report.session_id);
        let before = known.map(|at| self.told.remove(at).usage).unwrap_or_default();
        let used = before.max_each(report.usage);
        self.told.push(UsageReport { usage: used, ..report });
        let over = self.told.len().saturating_sub(SESSIONS);
        self.told.drain(..over);
        let new = used.saturating_sub(before);
        self.used = self.used.saturating_add(new);
        new
    }
}

/// A member between a life and the next.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Resting {
    pub(crate) comeback: Comeback,
    /// When the next one begins: ms since the epoch, for people, and on the daemon's own clock.
    pub(crate) at: u64,
    #[serde(skip)]
    pub(crate) due: u64,
    /// Until somebody brings it back.
    #[serde(default)]
    pub(crate) put_away: bool,
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}", self.comeback.order, self.at)
    }
}
