//! Replies of the daemon to clients. The JSON keys are also those of `teamctl --json`.

use super::hook_messages::{HookReply, LongPollEnd};
use super::host_requests::HostStatus;
use super::next_task_messages::NextTaskHint;
use super::pane_layout_and_visibility::{SetLayoutReply, VisibilityReply};
use super::placement::PlaceMemberReply;
use super::turn_status::{Activity, TurnPause, UsageLimit};
use super::worktree_messages::{RemovedWorktrees, WorktreeReply, WorktreeStatus};
use crate::delivery_kind::{Delivery, DeliveryPoint};
use crate::member_task_and_request_ids::TaskId;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The reply to a successful request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Reply to `status` and `status_with_screens`.
    Status(StatusReply),
    /// Reply to `create_team`.
    CreateTeam(CreateTeamReply),
    /// Reply to `create_worktree`.
    CreateWorktree(WorktreeReply),
    /// Reply to `spawn`.
    Spawn(SpawnReply),
    /// Reply to `shutdown`, `kill`, `stop_daemon` and `stop_daemon_and_suspend`.
    Exits(ExitsReply),
    /// Reply to `resume_members`.
    ResumeMembers(ResumeMembersReply),
    /// Reply to `delete_team`.
    DeleteTeam(DeleteTeamReply),
    /// Reply to `locate_pane`.
    LocatePane(LocatePaneReply),
    /// Reply to `capture_pane`.
    CapturePane(CapturePaneReply),
    /// Reply to `next_task`.
    NextTask(NextTaskHint),
    /// Reply to `interrupt`.
    Interrupt(InterruptReply),
    /// Reply to `hide_pane` and `show_pane`.
    Visibility(VisibilityReply),
    /// Reply to `set_layout`.
    SetLayout(SetLayoutReply),
    /// Reply to `set_mode`.
    SetMode(SetModeReply),
    /// Reply to `report_hook`.
    ReportHook(HookReply),
    /// Reply to `long_poll`.
    LongPoll(LongPollEnd),
    /// Reply to `place_member`.
    PlaceMember(PlaceMemberReply),
    /// Reply to a request that returns no data.
    Ack,
}

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
    /// leads the team now, if no session ever led it, or if the last lead session gave up the team
    /// before it ended.
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
    /// Why the restart policy no longer starts the member again: its spawns failed too often.
    /// `None` if this has not happened.
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

/// The reply to a `ResumeMembersRequest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeMembersReply {
    /// The members that are started again, by team. A start that fails later shows up in `status`.
    pub members: BTreeMap<TeamName, Vec<MemberName>>,
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
    /// The moment at which messages reach the member. It usually follows from `delivery`. An agent
    /// with the delivery `hook` must ask for its messages (`on-pull`) while no hook can deliver
    /// them. No hook can if the agent is idle and no hook waits, or if the agent works and no hook
    /// has reported yet.
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

/// The reply to a `CreateTeamRequest` (docs/protocol.md section 7, TeamCreate).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTeamReply {
    /// The team's final name.
    pub team_name: TeamName,
    /// Path of the team's config.json.
    pub team_file_path: PathBuf,
    /// Id of the lead: `team-lead@TEAM`.
    pub lead_agent_id: String,
    /// Path of the team's record. `None` if the team is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

/// The reply to a `SpawnRequest` (docs/protocol.md section 7, spawn).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpawnReply {
    /// Always `teammate_spawned`.
    pub status: String,
    /// Id of the member: `NAME@TEAM`.
    pub agent_id: String,
    /// Same as `agent_id`.
    pub teammate_id: String,
    /// The member's final name.
    pub name: MemberName,
    /// The member's team.
    pub team_name: TeamName,
    /// Name of the member's color.
    pub color: String,
    /// The member's model, `""` for none.
    pub model: String,
    /// The member's agent type.
    pub agent_type: String,
    /// Whether the member starts in plan mode.
    pub plan_mode_required: bool,
    /// The prompt, which is the member's first message.
    pub prompt: String,
    /// The pane, such as `%14`, or `in-process`.
    pub pane: String,
    /// Where people find the pane's window: `SESSION:INDEX`. `None` without a pane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The agent's process id. If the shim runs the agent's turns, the process id of the shim.
    pub pid: u32,
    /// `tmux`, `window` or `in-process`.
    pub backend: String,
}

/// The reply to a request that interrupts a member.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptReply {
    /// Name of the member.
    pub name: MemberName,
    /// Whether the member was in a turn, which was interrupted.
    pub was_in_turn: bool,
}

/// The reply to a `SetModeRequest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModeReply {
    /// Name of the member, or `team-lead`.
    pub name: MemberName,
    /// The new mode. The member's program may change to it later.
    pub mode: PermissionMode,
}

/// The reply to requests that end members: which exited, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitsReply {
    /// One entry for each member of the request.
    pub exits: Vec<AgentExit>,
}

/// How a member reacted to a request to exit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentExit {
    /// Name of the member.
    pub name: MemberName,
    /// Team of the member.
    pub team: TeamName,
    /// How the member exited, or why it did not, as a text for people: for example `approved`,
    /// `exit 0`, `rejected: …`, `no answer` or `killed`.
    pub description: String,
    /// Whether the member has exited.
    pub has_exited: bool,
    /// Why the daemon could not yet close the member's pane, or remove the member from the team
    /// files. The daemon tries again. `None` if nothing is left to remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_error: Option<String>,
    /// Whether the member is suspended, so that `teamctl up --resume` starts it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_suspended: bool,
    /// Id of the shutdown request. `None` if the member was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The reply to a `DeleteTeamRequest` (docs/protocol.md section 7, TeamDelete).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteTeamReply {
    /// Always true; a failure is an error response.
    pub success: bool,
    /// The result, as a text for people.
    pub message: String,
    /// Name of the deleted team.
    pub team_name: TeamName,
    /// What was done with the team's worktrees.
    #[serde(default, flatten)]
    pub worktrees: RemovedWorktrees,
}

/// Where the output of a member can be seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LocatePaneReply {
    /// In a tmux pane.
    Pane {
        /// The pane, such as `%14`.
        pane: String,
        /// Socket of the tmux server.
        tmux: PathBuf,
        /// Whether the pane is hidden and must be shown first.
        #[serde(default)]
        is_hidden: bool,
    },
    /// In a session of iTerm2.
    Iterm2Session {
        /// The id of the session, a UUID.
        session: String,
        /// The absolute path of the program `it2`, which shows the session.
        it2: PathBuf,
    },
    /// In a log file, because the member has no pane.
    Log {
        /// Absolute path of the file.
        path: PathBuf,
    },
}

/// The content of a pane.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePaneReply {
    /// The lines, as tmux prints them.
    pub screen: String,
}

/// The daemon writes `Debug` output to its log, so this output omits the screen's text.
impl std::fmt::Debug for CapturePaneReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a screen of {} bytes", self.screen.len())
    }
}
