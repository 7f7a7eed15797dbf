//! The reply to a request for the status: the daemon, its teams and their members.

use crate::control_socket::host_requests::HostStatus;
use crate::control_socket::turn_status::{Activity, TurnPause, UsageLimit};
use crate::control_socket::worktree_messages::WorktreeStatus;
use crate::delivery_kind::{Delivery, DeliveryPoint};
use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The daemon and its teams.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReply {
    /// The daemon.
    pub daemon: DaemonStatus,
    /// The teams, ordered by name.
    pub teams: Vec<TeamStatus>,
}

/// Status of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonStatus {
    /// The daemon's process id.
    pub pid: u32,
    /// The daemon's release.
    pub version: String,
    /// The daemon's root.
    pub root: PathBuf,
    /// Socket of the tmux server. `None` without tmux; then no agent has a pane.
    pub tmux: Option<PathBuf>,
    /// How the daemon detects changes of files: `events`, or `rescan` if the file system sends no
    /// events.
    pub watch_mode: String,
    /// Whether the daemon is stopping and waits for its agents to exit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopping: bool,
}

/// Status of a team.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamStatus {
    /// Name of the team.
    pub name: TeamName,
    /// The running members.
    pub members: Vec<MemberStatus>,
    /// Past members whose names are still free, the most recent last.
    #[serde(default)]
    pub past_members: Vec<PastMember>,
    /// The worktrees of current and past members that are not removed yet.
    #[serde(default)]
    pub worktrees: Vec<WorktreeStatus>,
    /// The team's usage and limits. `None` if the policy has no limit and no program reports usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    /// When the team's lead session ended, in milliseconds since the epoch. `None` if a session
    /// leads the team now, if no session ever led it, or if the user has typed `teamctl lead
    /// --release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_session_ended_at: Option<u64>,
    /// Path of the team's record. `None` if the team is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// The other hosts that run members of the team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStatus>,
}

impl TeamStatus {
    /// Whether a limit of the team's policy is reached. If so, no member is started until the
    /// policy is changed.
    pub fn is_budget_exhausted(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.exhausted_reason.is_some())
    }
}

/// Usage and limits of a team. A limit is `None` if the policy does not set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// Number of turns that have started.
    pub turns: u64,
    /// Maximum number of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Tokens and cost of all members, as reported by their programs.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// Maximum number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Maximum cost in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_microdollars: Option<u64>,
    /// When teamd created the team, in milliseconds since the epoch. If another program created the
    /// team: when teamd first found it. The time limit counts from this moment.
    pub started_at: u64,
    /// Maximum duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// Which limit is reached. `None` if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted_reason: Option<String>,
}

/// A member whose spawn has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastMember {
    /// Name of the member.
    pub name: MemberName,
    /// `completed` (by itself or after a shutdown request), `failed` or `killed`.
    pub outcome: String,
    /// How the spawn ended, for people, such as `exit 1`, `killed (signal 9)` or `approved`.
    pub description: String,
    /// When the spawn ended, in milliseconds since the epoch.
    pub ended_at: u64,
    /// When the member is started again, in milliseconds since the epoch. `None` if no respawn is
    /// scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respawns_at: Option<u64>,
    /// Whether the member is suspended. Only `teamctl up --resume` starts it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_suspended: bool,
    /// A text for people if the member's spawns have failed too often, so that the restart policy
    /// does not start the member again. `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respawns_exhausted_reason: Option<String>,
    /// Tokens and cost of the spawn, as reported by its program.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
}

impl PastMember {
    /// Whether another spawn of the member will follow, so that the member keeps its tasks.
    pub fn has_respawn(&self) -> bool {
        self.respawns_at.is_some() || self.is_suspended
    }
}

/// A condition of a running member that needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberFlag {
    /// The member's plan waits for an answer.
    AwaitingPlanApproval,
    /// The member's permission request waits for an answer.
    AwaitingPermission,
    /// The member has not answered a shutdown request.
    ShutdownRequested,
    /// The member's program waits at a dialog on its screen.
    AtDialog,
    /// The member's screen could not be read, so it is unknown whether the program waits at a
    /// dialog.
    DialogUnknown,
    /// The member's turn has written no output for long, so its program may wait for a person.
    NoOutput,
    /// Turns of the member wait, because its last turns have failed or because it has answered
    /// another member too often.
    Paused,
    /// The member's program has reached its usage limit, and has said when the limit ends.
    Limited,
    /// Too many turns of the member in a row have failed, so it starts no further turn by itself. A
    /// message from a person or from the lead starts the next turn.
    TurnsStopped,
}

impl MemberFlag {
    /// The flag's name in `teamctl status`.
    pub fn as_str(self) -> &'static str {
        match self {
            MemberFlag::AwaitingPlanApproval => "awaiting_plan_approval",
            MemberFlag::AwaitingPermission => "awaiting_permission",
            MemberFlag::ShutdownRequested => "shutdown_requested",
            MemberFlag::AtDialog => "at_dialog",
            MemberFlag::DialogUnknown => "dialog_unknown",
            MemberFlag::NoOutput => "no_output",
            MemberFlag::Paused => "paused",
            MemberFlag::Limited => "limited",
            MemberFlag::TurnsStopped => "turns_stopped",
        }
    }
}

/// Status of a running member.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberStatus {
    /// Name of the member.
    pub name: MemberName,
    /// Id of the member: `NAME@TEAM`.
    pub agent_id: String,
    /// `starting`, `running`, `disconnected` (the shim is not connected), `stopping`, or `exited`
    /// (the daemon is still removing the member from the team's files).
    pub lifecycle: String,
    /// `pending` or `running`, the names that other programs use.
    #[serde(default)]
    pub state: String,
    /// Conditions that need attention.
    #[serde(default)]
    pub flags: Vec<MemberFlag>,
    /// The question of the dialog at which the member's program waits. `None` without a dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
    /// Why turns of the member wait although there is work for them. `None` if no turn waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_pause: Option<TurnPause>,
    /// The usage limit that the member's program has reached, according to its last turn or its
    /// screen. `None` if the program has reached no limit, or if the limit's end is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_limit: Option<UsageLimit>,
    /// The task of the current turn. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_task: Option<TaskId>,
    /// Why the member counts as active or idle, as a text for people, such as `turn 3 by pid 77:
    /// task 4: …` or `it said so`.
    #[serde(default)]
    pub activity_reason: String,
    /// How often the member was started again.
    #[serde(default)]
    pub respawns: u32,
    /// Tokens and cost, as reported by the member's program.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// Whether the member is in a turn.
    pub activity: Activity,
    /// When the current activity began, in milliseconds since the epoch.
    pub activity_since: u64,
    /// The task that the member works on.
    pub task: Option<String>,
    /// The permission mode. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How messages reach the member.
    #[serde(default)]
    pub delivery: Delivery,
    /// When messages reach the member. The value depends on `delivery`. With delivery `hook`, it is
    /// `on-pull` if no hook can deliver messages: the agent is idle and no hook waits, or the
    /// agent works and no hook has reported yet. The agent must then ask for its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_point: Option<DeliveryPoint>,
    /// The pane, such as `%14`. `None` without a pane.
    pub pane: Option<String>,
    /// Whether the pane is hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// The agent's process id.
    pub pid: Option<u32>,
    /// `tmux`, `window` or `in-process`.
    pub backend: String,
    /// The worktree in which the member was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
    /// The branch that the worktree was created for. `None` without a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of the member's color.
    pub color: String,
    /// Name of the file with the agent's environment. The file is in the subdirectory
    /// `environments` of the daemon's state directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment_file: String,
}
