//! The data from which the next spawn of a member starts. That spawn follows a failure, the
//! approval of a plan, or the resumption of a suspended member.

use crate::core::roster::usage_totals::UsageTotals;
use protocol::control_socket::{LaunchArgv, PlanStage, SpawnRequest};
use protocol::permission_mode::PermissionMode;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the earlier spawns of a member leave to its next spawn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RespawnRecord {
    /// The name of the file with the member's environment, in the directory `environments` of the
    /// state directory. Empty until the first spawn.
    pub(crate) environment_file: String,
    /// When the member was spawned first, in milliseconds since the epoch. 0 until the first spawn.
    #[serde(default)]
    pub(crate) first_spawned_at: u64,
    /// When spawns of the member failed, in milliseconds since the epoch, the latest last. Failures
    /// that are too old for the restart policy are removed at the next failure.
    pub(crate) failed_at: Vec<u64>,
    /// How often the member was respawned.
    pub(crate) respawns: u32,
    /// The session of the member's program, for the next spawn to resume.
    pub(crate) session: Option<String>,
    /// The usage of all spawns, as far as the program reports it.
    pub(crate) usage: UsageTotals,
    /// The permission mode of the last turn. `None`: the mode of the request.
    pub(crate) mode: Option<PermissionMode>,
    /// The stage of the member's plan. `None` once the plan is approved, and for a member that does
    /// not plan.
    pub(crate) plan: Option<PlanStage>,
    /// Whether a plan of the member was approved.
    pub(crate) is_plan_approved: bool,
    /// The permission mode that was approved with the plan. `None` without an approval, and for a
    /// program that can change its mode while it runs.
    pub(crate) approved_mode: Option<PermissionMode>,
    /// Whether the spawn before this one was ended because its plan was approved.
    #[serde(default)]
    pub(crate) follows_plan_approval: bool,
    /// Whether the pane was hidden at the end of the last spawn. The pane of the next spawn is
    /// hidden, too.
    #[serde(default)]
    pub(crate) is_hidden: bool,
}

impl RespawnRecord {
    /// The command line of a spawn that follows the approval of a plan. `None` if no plan was
    /// approved, or if the spawn request has no command line for the approved mode.
    pub(crate) fn approved_launch<'r>(&self, request: &'r SpawnRequest) -> Option<&'r LaunchArgv> {
        request.launches_after_approval.get(self.approved_mode?.as_str())
    }
}

/// A member between two spawns.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PendingRespawn {
    #[serde(serialize_with = "serialize_without_environment")]
    pub(crate) request: Arc<SpawnRequest>,
    pub(crate) respawn: RespawnRecord,
    /// When the next spawn starts, or when the member was suspended, in milliseconds since the
    /// epoch. This time is only shown to people. The daemon itself uses the field `start`.
    pub(crate) respawn_at: u64,
    pub(crate) start: RespawnStart,
}

impl PendingRespawn {
    pub(crate) fn is_suspended(&self) -> bool {
        self.start == RespawnStart::WhenResumed
    }
}

/// What the next spawn of a member waits for.
///
/// When the daemon is restarted, a suspended member stays suspended. Any other member is respawned
/// at once, even if its respawn was to start later
/// (`decide_respawns_and_suspensions::restore_deadlines`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RespawnStart {
    /// A time, in milliseconds on the monotonic clock.
    At(u64),
    /// The end of the cleanup after the last spawn.
    WhenNameFree,
    /// A client that resumes the member.
    WhenResumed,
}

impl RespawnStart {
    /// When the spawn starts, in milliseconds on the monotonic clock. `None` if the spawn waits
    /// until the member's name is free, or until a client resumes the member.
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

/// Saves a spawn request without its environment, which may hold secrets and has a file of its own.
pub(crate) fn serialize_without_environment<S: Serializer>(
    request: &SpawnRequest,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    SpawnRequest { env: BTreeMap::new(), ..request.clone() }.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_recognize_a_suspended_member() {
        let start = serde_json::to_value(RespawnStart::WhenResumed).unwrap();
        assert_eq!(start, protocol::roster_file_for_clients::RESUMED_START);
    }
}
