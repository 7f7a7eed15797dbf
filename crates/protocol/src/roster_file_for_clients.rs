//! The part of the daemon's roster.json that clients read: capabilities, spawns and panes of
//! members, suspended members, and the usage and worktrees of teams.
//!
//! Clients read the file if no daemon runs, or if a command works without the daemon.

#[cfg(test)]
mod tests;

use crate::check_program_supports_answer::Capabilities;
use crate::control_socket::{PastMember, PlanStage, TeamStatus, WorktreeStatus};
use crate::delivery_kind::Delivery;
use crate::member_task_and_request_ids::RequestId;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::token_and_cost_usage::Usage;
use crate::worker_or_program_that_runs_turns::TurnProgram;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The part of roster.json that clients read.
#[derive(Default, Deserialize)]
pub struct RosterFile {
    version: u32,
    #[serde(default)]
    records: Vec<RosterRecord>,
    #[serde(default)]
    past_members: BTreeMap<TeamName, Vec<PastMember>>,
    #[serde(default)]
    pending_respawns: Vec<RecordedRespawn>,
    #[serde(default)]
    worktrees: BTreeMap<TeamName, Vec<RosterWorktree>>,
    #[serde(default)]
    usage: BTreeMap<TeamName, RecordedUsage>,
}

/// The worktree of a current or past member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RosterWorktree {
    /// Name of the member.
    pub member: MemberName,
    /// The record of the worktree, in the format of the crate `worktree`.
    pub record: serde_json::Value,
}

/// Tokens and cost of a team, as its programs reported them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamUsageRecord {
    /// The usage of all members that the team has ever had.
    pub total: Usage,
    /// The usage of each current and past member that has reported any. If several members had the
    /// same name, one after the other, only the usage of the last one is here.
    pub members: BTreeMap<MemberName, Usage>,
}

/// The part of a team's or member's usage that clients read.
#[derive(Debug, Default, Deserialize)]
struct RecordedUsage {
    #[serde(default)]
    usage: Usage,
    /// What the members on other hosts have used, by host.
    #[serde(default)]
    annexes: BTreeMap<String, RecordedAnnexUsage>,
}

/// The part of the usage on another host that clients read.
#[derive(Debug, Default, Deserialize)]
struct RecordedAnnexUsage {
    #[serde(default)]
    members: BTreeMap<MemberName, Usage>,
}

/// The value of the field `start` in the record of a suspended member. It says that the member's
/// next spawn waits until the member is resumed.
pub const RESUMED_START: &str = "when_resumed";

/// The part of a suspended member's record that clients read.
#[derive(Debug, Deserialize)]
struct RecordedRespawn {
    request: TeamOfRequest,
    respawn: PlanOfRespawn,
    /// [`RESUMED_START`], or what else the next spawn waits for.
    #[serde(default)]
    start: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct TeamOfRequest {
    team: TeamName,
}

#[derive(Debug, Deserialize)]
struct PlanOfRespawn {
    #[serde(default)]
    plan: Option<PlanStage>,
}

/// The part of a worktree's record that clients read.
#[derive(Debug, Deserialize)]
struct RecordOfWorktree {
    path: PathBuf,
    branch: String,
    common_git_dir: PathBuf,
}

/// The part of a member's record that clients read. It has no `Debug`, because the token is secret.
#[derive(Deserialize)]
struct RosterRecord {
    spawn_id: String,
    #[serde(default)]
    token: String,
    #[serde(default)]
    respawn: UsageOfSpawns,
    request: RecordedRequest,
    pane: Option<RecordedPane>,
    lifecycle: RecordedLifecycle,
}

#[derive(Debug, Default, Deserialize)]
struct UsageOfSpawns {
    #[serde(default)]
    usage: RecordedUsage,
}

#[derive(Debug, Deserialize)]
struct RecordedPane {
    server_epoch: String,
}

/// The part of a spawn request that clients read.
#[derive(Debug, Deserialize)]
struct RecordedRequest {
    team: TeamName,
    name: MemberName,
    delivery: Delivery,
    #[serde(default)]
    turns: Option<TurnProgram>,
    #[serde(default)]
    launches_after_approval: BTreeMap<String, IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedLifecycle {
    Running(IgnoredAny),
    Stopping(IgnoredAny),
    Exited(IgnoredAny),
}

/// Why a roster cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum RosterFileError {
    /// It is not a valid roster.
    #[error(transparent)]
    Invalid(#[from] serde_json::Error),
    /// It has another version of the format.
    #[error("it has version {version}, and this release reads version {}", RosterFile::VERSION)]
    OtherVersion {
        /// The version.
        version: u32,
    },
}

impl RosterFile {
    /// Version of the file's format. Neither the daemon nor a client reads another version.
    pub const VERSION: u32 = 2;

    /// Parses a roster.
    ///
    /// # Errors
    ///
    /// [`RosterFileError`] if `bytes` is not a valid roster of this version.
    pub fn parse(bytes: &[u8]) -> Result<RosterFile, RosterFileError> {
        let roster: RosterFile = serde_json::from_slice(bytes)?;
        match roster.version {
            Self::VERSION => Ok(roster),
            version => Err(RosterFileError::OtherVersion { version }),
        }
    }

    /// What the program of the member `name` can do. If no such member runs, all capabilities are
    /// unknown.
    pub fn member_capabilities(&self, team: &TeamName, name: &MemberName) -> Capabilities {
        self.running_record(team, name).map_or_else(Capabilities::default, RosterRecord::capabilities)
    }

    /// Whether teamd gives the member its tasks. On an annex, such a member begins a task only
    /// after the team's home has confirmed the claim. False if no such member runs.
    pub fn confirms_claims(&self, team: &TeamName, name: &MemberName) -> bool {
        self.running_record(team, name).is_some_and(|record| {
            matches!(record.request.delivery, Delivery::Turn | Delivery::Acp | Delivery::Hook)
        })
    }

    fn running_record(&self, team: &TeamName, name: &MemberName) -> Option<&RosterRecord> {
        self.records.iter().rev().find(|record| record.is_running_member(team, name))
    }

    /// Whether the member `name` is a built-in worker that runs the command of each task. Such a
    /// worker cannot do a task without a command. False if no such member runs.
    pub fn needs_task_commands(&self, team: &TeamName, name: &MemberName) -> bool {
        let program = self.running_record(team, name).and_then(|record| record.request.turns.as_ref());
        matches!(program, Some(TurnProgram::Worker(worker)) if worker.run.is_none())
    }

    /// Ids of all spawns that have a record.
    pub fn spawn_ids(&self) -> Vec<String> {
        self.records.iter().map(|record| record.spawn_id.clone()).collect()
    }

    /// Whether the spawn with the token `token` has ended and another spawn of the member `name`
    /// runs. False if the roster has no spawn of the member: a lost roster must not stop an agent
    /// that still runs.
    pub fn is_superseded(&self, team: &TeamName, name: &MemberName, token: &str) -> bool {
        let is_known = self.records.iter().any(|record| record.token == token);
        !is_known && self.records.iter().any(|record| record.is_running_member(team, name))
    }

    /// Epochs of the tmux servers of all panes, without duplicates.
    pub fn server_epochs(&self) -> BTreeSet<String> {
        let epochs =
            self.records.iter().filter_map(|record| Some(record.pane.as_ref()?.server_epoch.clone()));
        // A session of iTerm2 has none.
        epochs.filter(|epoch| !epoch.is_empty()).collect()
    }

    /// The teams that have suspended members, in the format of the daemon's status. Each team lists
    /// only its suspended members.
    pub fn suspended_teams(&self) -> Vec<TeamStatus> {
        let teams = self.past_members.iter().map(|(name, members)| TeamStatus {
            name: name.clone(),
            members: Vec::new(),
            past_members: members.iter().filter(|member| member.is_suspended).cloned().collect(),
            worktrees: Vec::new(),
            budget: None,
            lead_session_ended_at: None,
            record: None,
            hosts: Vec::new(),
        });
        teams.filter(|team| !team.past_members.is_empty()).collect()
    }

    /// Whether the member is suspended.
    pub fn is_suspended(&self, team: &TeamName, name: &MemberName) -> bool {
        let members = self.past_members.get(team).into_iter().flatten();
        members.into_iter().any(|member| member.is_suspended && member.name == *name)
    }
}

impl RosterFile {
    /// Ids of the plan requests of the team's suspended members. When a member is resumed, it sends
    /// its request again with the same id.
    pub fn plans_to_resubmit(&self, team: &TeamName) -> BTreeSet<RequestId> {
        let is_suspended = |pending: &&RecordedRespawn| pending.start.as_str() == Some(RESUMED_START);
        let of_team = self.pending_respawns.iter().filter(|pending| pending.request.team == *team);
        let plan = |pending: &RecordedRespawn| match &pending.respawn.plan {
            Some(PlanStage::AwaitingApproval { request_id, .. }) => Some(request_id.clone()),
            _ => None,
        };
        of_team.filter(is_suspended).filter_map(plan).collect()
    }
}

impl RosterFile {
    /// Tokens and cost of the team, in all and for each member.
    pub fn team_usage(&self, team: &TeamName) -> TeamUsageRecord {
        let past_members = self.past_members.get(team).into_iter().flatten();
        let past = past_members.map(|member| (member.name.clone(), member.usage));
        let records = self.records.iter().filter(|record| record.request.team == *team);
        let current = records.map(|record| (record.request.name.clone(), record.respawn.usage.usage));
        let recorded = self.usage.get(team);
        let annexes = recorded.into_iter().flat_map(|usage| usage.annexes.values());
        let elsewhere = annexes.flat_map(|annex| annex.members.clone());
        // If a name is in more than one of these lists, `current` counts before `past`, and `past`
        // before `elsewhere`. The record of a running member has the usage of all its spawns, so
        // `current` counts first.
        let members = elsewhere.chain(past).chain(current).filter(|(_, usage)| !usage.is_zero()).collect();
        TeamUsageRecord { total: recorded.map(|team| team.usage).unwrap_or_default(), members }
    }

    /// The worktrees of the team's current and past members that are not removed yet.
    pub fn worktrees(&self, team: &TeamName) -> &[RosterWorktree] {
        self.worktrees.get(team).map_or(&[], Vec::as_slice)
    }

    /// Where the worktrees of the team's members are, oldest first. A record that cannot be read is
    /// left out.
    pub fn worktree_statuses(&self, team: &TeamName) -> Vec<WorktreeStatus> {
        let status = |worktree: &RosterWorktree| {
            let record: RecordOfWorktree = serde_json::from_value(worktree.record.clone()).ok()?;
            Some(WorktreeStatus {
                member: worktree.member.clone(),
                path: record.path,
                branch: record.branch,
                repository: record.common_git_dir,
            })
        };
        self.worktrees(team).iter().filter_map(status).collect()
    }
}

impl RosterRecord {
    fn is_running_member(&self, team: &TeamName, name: &MemberName) -> bool {
        self.request.team == *team
            && self.request.name == *name
            && !matches!(self.lifecycle, RecordedLifecycle::Exited(_))
    }

    fn capabilities(&self) -> Capabilities {
        let RecordedRequest { delivery, turns, launches_after_approval, .. } = &self.request;
        let modes = match delivery {
            Delivery::Native => Vec::new(),
            Delivery::Turn | Delivery::Acp => turns.as_ref().map(TurnProgram::modes).unwrap_or_default(),
            Delivery::Hook | Delivery::Pull => launches_after_approval.keys().cloned().collect(),
        };
        Capabilities::new(*delivery, modes)
    }
}
