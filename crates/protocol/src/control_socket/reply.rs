//! Replies of the daemon to clients. The JSON keys are also those of `teamctl --json`.

use super::hook_messages::{HookReply, LongPollEnd};
use super::next_task_messages::NextTaskHint;
use super::pane_layout_and_visibility::{SetLayoutReply, VisibilityReply};
use super::placement::PlaceMemberReply;
use super::worktree_messages::{RemovedWorktrees, WorktreeReply};
use crate::control_socket::status_reply::StatusReply;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::{MemberName, TeamName};
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

/// The reply to a `ResumeMembersRequest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeMembersReply {
    /// The members that are started again, by team. A start that fails later shows up in `status`.
    pub members: BTreeMap<TeamName, Vec<MemberName>>,
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
