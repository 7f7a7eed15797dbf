//! The record from which a member is spawned again: after a failure, for an approved plan, or when
//! it is resumed.

use crate::core::roster::usage_totals::UsageTotals;
use protocol::control::{LaunchArgv, PlanStage, SpawnRequest};
use protocol::permission_mode::PermissionMode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the spawns of a member have come to. The next spawn starts from it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RespawnRecord {
    /// The file of the member's environment, below `env` of the state directory. Empty until the
    /// first spawn, and in the roster of an early release.
    #[serde(default)]
    pub(crate) environment_file: String,
    /// When spawns failed, in milliseconds since the epoch, the latest last. Only failures that
    /// still count.
    pub(crate) failed_at: Vec<u64>,
    /// How often the member was respawned.
    pub(crate) respawns: u32,
    /// The session of the member's program, for the next spawn to resume.
    pub(crate) session: Option<String>,
    /// The usage of all spawns, as far as the program reports it.
    #[serde(default)]
    pub(crate) usage: UsageTotals,
    /// The permission mode of the last turn. `None`: the mode of the request.
    #[serde(default)]
    pub(crate) mode: Option<PermissionMode>,
    /// The stage of the member's plan. `None` once it is approved, and for a member that does not
    /// plan.
    #[serde(default)]
    pub(crate) plan: Option<PlanStage>,
    /// A plan of the member was approved.
    #[serde(default)]
    pub(crate) is_plan_approved: bool,
    /// The mode of that approval, if the program can change its mode only at its start.
    #[serde(default)]
    pub(crate) approved_mode: Option<PermissionMode>,
}

impl RespawnRecord {
    /// The command line of a spawn after the approval of a plan. `None` if the request has none for
    /// that mode.
    pub(crate) fn approved_launch<'r>(&self, request: &'r SpawnRequest) -> Option<&'r LaunchArgv> {
        request.approved.get(self.approved_mode?.as_str())
    }
}

/// A member between two spawns.
#[derive(Clone)]
pub(crate) struct PendingRespawn {
    pub(crate) request: Arc<SpawnRequest>,
    pub(crate) respawn: RespawnRecord,
    /// When the next spawn starts, or when the member was suspended, in milliseconds since the
    /// epoch. For people.
    pub(crate) respawn_at: u64,
    pub(crate) start: RespawnStart,
}

impl PendingRespawn {
    pub(crate) fn is_suspended(&self) -> bool {
        self.start == RespawnStart::WhenResumed
    }
}

/// What the next spawn of a member waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RespawnStart {
    /// A time, in milliseconds on the monotonic clock.
    At(u64),
    /// The end of the cleanup after the last spawn.
    WhenNameFree,
    /// A client that resumes the member.
    WhenResumed,
}

impl RespawnStart {
    /// The time of the start, in milliseconds on the monotonic clock. `None` if it waits for
    /// something else.
    pub(crate) fn deadline(self) -> Option<u64> {
        match self {
            RespawnStart::At(deadline) => Some(deadline),
            RespawnStart::WhenNameFree | RespawnStart::WhenResumed => None,
        }
    }
}

impl std::fmt::Debug for PendingRespawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}", self.request, self.respawn_at)
    }
}
