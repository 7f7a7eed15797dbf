//! What it takes to start a member again: after a failure, after its plan, or on another day.

use crate::core::roster::usage::UsageTotals;
use protocol::control::PlanStage;
use protocol::control::{LaunchArgv, SpawnRequest};
use protocol::permission_mode::PermissionMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A member's order, and what its lives have come to.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RespawnRecord {
    /// On disk without its environment, which may hold secrets: that lies in the file `env`.
    #[serde(serialize_with = "without_environment")]
    #[serde(rename = "order")]
    pub(crate) request: Box<SpawnRequest>,
    /// The file of its environment, below `env` of the state directory.
    #[serde(default)]
    #[serde(rename = "env")]
    pub(crate) environment_file: String,
    /// When its lives failed, ms since the epoch; those that count, the latest last.
    #[serde(rename = "failures")]
    pub(crate) failed_at: Vec<u64>,
    /// How often it was started again.
    #[serde(rename = "restarts")]
    pub(crate) respawns: u32,
    /// The session that its program had, for a next life to go on with.
    pub(crate) session: Option<String>,
    /// What it has used up in all its lives, as far as its program tells.
    #[serde(default)]
    #[serde(rename = "tally")]
    pub(crate) usage: UsageTotals,
    /// The mode that it was in; none: the one of its order.
    #[serde(default)]
    pub(crate) mode: Option<PermissionMode>,
    /// How far it was with its plan, while that was not approved.
    #[serde(default)]
    pub(crate) plan: Option<PlanStage>,
    /// A plan of its was approved.
    #[serde(default)]
    #[serde(rename = "plan_approved")]
    pub(crate) is_plan_approved: bool,
    /// The mode of that approval, where its lives have to begin in it.
    #[serde(default)]
    #[serde(rename = "approved")]
    pub(crate) approved_mode: Option<PermissionMode>,
}

impl RespawnRecord {
    /// Of a member that lives for the first time.
    pub(crate) fn new(order: &SpawnRequest) -> RespawnRecord {
        let order = Box::new(order.clone());
        let (mode, plan, plan_approved) = (None, None, false);
        RespawnRecord {
            request: order,
            environment_file: String::new(),
            failed_at: Vec::new(),
            respawns: 0,
            session: None,
            usage: UsageTotals::default(),
            mode,
            plan,
            is_plan_approved: plan_approved,
            approved_mode: None,
        }
    }

    /// What the lives after the approval of its plan are started with.
    pub(crate) fn approved_launch(&self) -> Option<&LaunchArgv> {
        self.request.approved.get(self.approved_mode?.as_str())
    }
}

fn without_environment<S: serde::Serializer>(order: &SpawnRequest, serializer: S) -> Result<S::Ok, S::Error> {
    without_env(order).serialize(serializer)
}

fn without_env(order: &SpawnRequest) -> SpawnRequest {
    SpawnRequest { env: BTreeMap::new(), ..order.clone() }
}

/// A member between a life and the next.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PendingRespawn {
    #[serde(rename = "comeback")]
    pub(crate) respawn: RespawnRecord,
    /// When the next one begins: ms since the epoch, for people, and on the daemon's own clock.
    #[serde(rename = "at")]
    pub(crate) respawn_at: u64,
    #[serde(skip)]
    #[serde(rename = "due")]
    pub(crate) deadline: u64,
    /// Until somebody brings it back.
    #[serde(default)]
    #[serde(rename = "put_away")]
    pub(crate) is_suspended: bool,
}

impl std::fmt::Debug for PendingRespawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}", self.respawn.request, self.respawn_at)
    }
}
