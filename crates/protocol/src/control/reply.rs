//! What the daemon answers; the keys are those that `--json` prints.

use super::hook::{HookReply, LongPollEnd};
use super::layout::{SetLayoutReply, VisibilityReply};
use super::next_task::NextTaskHint;
use super::pane_input::ScreenReply;
use super::turn_status::Activity;
use super::worktree::{RemovedWorktrees, WorktreeReply, WorktreeStatus};
use crate::delivery::{Delivery, DeliveryPoint};
use crate::id::TaskId;
use crate::name::{AgentName, TeamName};
use crate::permission_mode::PermissionMode;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The effect of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Of `status`.
    Status(StatusReply),
    /// Of `create`.
    #[serde(rename = "create")]
    CreateTeam(CreateTeamReply),
    /// Of a worktree.
    #[serde(rename = "worktree")]
    CreateWorktree(WorktreeReply),
    /// Of `spawn`.
    Spawn(SpawnReply),
    /// Of `shutdown`, `kill` and `down`.
    #[serde(rename = "endings")]
    Exits(ExitsReply),
    /// Of `bring_back`.
    #[serde(rename = "back")]
    ResumeMembers(ResumeMembersReply),
    /// Of `delete`.
    #[serde(rename = "delete")]
    DeleteTeam(DeleteTeamReply),
    /// Of `locate`.
    #[serde(rename = "locate")]
    LocatePane(LocatePaneReply),
    /// Of `capture`.
    #[serde(rename = "capture")]
    CapturePane(CapturePaneReply),
    /// Of `next_task`.
    NextTask(NextTaskHint),
    /// Of `interrupt`.
    Interrupt(InterruptReply),
    /// Of `hide` and `show`.
    #[serde(rename = "sight")]
    Visibility(VisibilityReply),
    /// Of `layout`.
    #[serde(rename = "layout")]
    SetLayout(SetLayoutReply),
    /// Of `set_mode`.
    #[serde(rename = "mode")]
    SetMode(SetModeReply),
    /// Of `hook`.
    #[serde(rename = "hook")]
    ReportHook(HookReply),
    /// Of a look at one's own pane.
    Screen(ScreenReply),
    /// Of `park`.
    #[serde(rename = "park")]
    LongPoll(LongPollEnd),
    /// Of requests that have nothing to tell.
    #[serde(rename = "nothing")]
    Ack,
}

/// The daemon and all that it supervises.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReply {
    /// The daemon itself.
    pub daemon: DaemonStatus,
    /// Its teams, by name.
    pub teams: Vec<TeamStatus>,
}

/// The daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// Its root.
    pub root: PathBuf,
    /// The tmux server's socket; none where there is no tmux: then teammates run without panes alone.
    pub tmux: Option<PathBuf>,
    /// `events`, or `rescan` where the file system sends none.
    #[serde(rename = "watch")]
    pub watch_mode: String,
    /// Somebody asked it to go down, and it waits for its agents to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "closing")]
    pub is_stopping: bool,
}

/// A team's living members.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamStatus {
    /// Its name.
    pub name: TeamName,
    /// Those the daemon supervises.
    pub members: Vec<MemberStatus>,
    /// Those whose life has ended and whose name nobody has taken since, the latest last.
    #[serde(default)]
    #[serde(rename = "past")]
    pub past_members: Vec<PastMember>,
    /// Made for its members, those that have ended too, and not removed yet.
    #[serde(default)]
    pub worktrees: Vec<WorktreeStatus>,
    /// What it has used up of what its policy gives it; none where that sets no limit, and no program tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
}

impl TeamStatus {
    /// Nobody is started for it any more, until its policy gives it more.
    pub fn is_budget_exhausted(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.exhausted_reason.is_some())
    }
}

/// What a team has used up, and of how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// Turns that have begun.
    pub turns: u64,
    /// As many as there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of_turns")]
    pub max_turns: Option<u64>,
    /// What its members have used up, as far as their programs tell.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    #[serde(rename = "used")]
    pub usage: Usage,
    /// As many tokens as there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of_tokens")]
    pub max_tokens: Option<u64>,
    /// What they may cost, in millionths of a dollar of the United States.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of_microdollars")]
    pub max_microdollars: Option<u64>,
    /// When its time began, ms since the epoch.
    #[serde(rename = "since")]
    pub started_at: u64,
    /// How long it may take, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of_ms")]
    pub max_time_ms: Option<u64>,
    /// Why nobody is started for it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "spent")]
    pub exhausted_reason: Option<String>,
}

/// A member whose life has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastMember {
    /// Its name.
    pub name: AgentName,
    /// `completed` (by itself or with its own yes), `failed`, `killed`.
    #[serde(rename = "state")]
    pub outcome: String,
    /// For people: `exit 1`, `killed (signal 9)`, `approved`…
    #[serde(rename = "how")]
    pub description: String,
    /// When, ms since the epoch.
    #[serde(rename = "at")]
    pub ended_at: u64,
    /// When it is started again, ms since the epoch; none: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "again_at")]
    pub respawns_at: Option<u64>,
    /// It is brought back by `teamctl up --resume`, and by nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "rests")]
    pub is_suspended: bool,
    /// What it had used up, as far as its program told.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    #[serde(rename = "used")]
    pub usage: Usage,
}

impl PastMember {
    /// Its tasks stay its own, since another life follows.
    pub fn has_respawn(&self) -> bool {
        self.respawns_at.is_some() || self.is_suspended
    }
}

/// Who is started again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeMembersReply {
    /// By team; a start that comes to nothing is found in `status`.
    pub members: BTreeMap<TeamName, Vec<AgentName>>,
}

/// What is to be known of a running member beside its activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberFlag {
    /// Its plan waits for an answer.
    AwaitingPlanApproval,
    /// It asks for permission, and waits for the answer.
    AwaitingPermission,
    /// It was asked to shut down, and has not answered.
    ShutdownRequested,
    /// Its program waits at a dialog, for a permission say.
    AtDialog,
    /// Whether it does is not known: its screen could not be looked at.
    DialogUnknown,
}

impl MemberFlag {
    /// The word in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            MemberFlag::AwaitingPlanApproval => "awaiting_plan_approval",
            MemberFlag::AwaitingPermission => "awaiting_permission",
            MemberFlag::ShutdownRequested => "shutdown_requested",
            MemberFlag::AtDialog => "at_dialog",
            MemberFlag::DialogUnknown => "dialog_unknown",
        }
    }
}

/// One supervised agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberStatus {
    /// Its name.
    pub name: AgentName,
    /// `NAME@TEAM`.
    pub agent_id: String,
    /// `starting`, `running`, `stopping`, `unknown` (its first process is not connected).
    #[serde(rename = "phase")]
    pub lifecycle: String,
    /// As other programs on these files name it: `pending` or `running`.
    #[serde(default)]
    pub state: String,
    /// What waits.
    #[serde(default)]
    pub flags: Vec<MemberFlag>,
    /// The task that its turn is on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_task: Option<TaskId>,
    /// What tells us that it is active or idle: `turn 3 by pid 77: task 4: …`, `it said so`.
    #[serde(default)]
    pub evidence: String,
    /// How often it was started again.
    #[serde(default)]
    #[serde(rename = "restarts")]
    pub respawns: u32,
    /// What it has used up, as far as its program tells.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    #[serde(rename = "used")]
    pub usage: Usage,
    /// In a turn or not.
    pub activity: Activity,
    /// Since when it is so, ms since the epoch.
    #[serde(rename = "since")]
    pub activity_since: u64,
    /// The task it works on.
    pub task: Option<String>,
    /// Its permission mode, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How it gets its messages.
    #[serde(default)]
    #[serde(rename = "feed")]
    pub delivery: Delivery,
    /// When they reach it; other than the feed promises where just now it can't be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "reaches")]
    pub delivery_point: Option<DeliveryPoint>,
    /// `%14`.
    pub pane: Option<String>,
    /// That pane is out of sight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The agent's process.
    pub pid: Option<u32>,
    /// `tmux`, `window`, `in-process`.
    pub backend: String,
    /// The worktree that it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
    /// Its colour.
    pub color: String,
    /// The file of its environment, below `env` of the daemon's state directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "environment")]
    pub environment_file: String,
}

/// docs/protocol.md section 7, TeamCreate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTeamReply {
    /// The name it got.
    pub team_name: TeamName,
    /// Its config.json.
    pub team_file_path: PathBuf,
    /// `team-lead@TEAM`.
    pub lead_agent_id: String,
}

/// docs/protocol.md section 7, spawn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpawnReply {
    /// Always `teammate_spawned`.
    pub status: String,
    /// `NAME@TEAM`.
    pub agent_id: String,
    /// The same.
    pub teammate_id: String,
    /// The name it got.
    pub name: AgentName,
    /// Its team.
    pub team_name: TeamName,
    /// Its colour.
    pub color: String,
    /// Its model, `""` for none.
    pub model: String,
    /// Its type.
    pub agent_type: String,
    /// Whether it starts in plan mode.
    pub plan_mode_required: bool,
    /// The first message.
    pub prompt: String,
    /// `%14`, or `in-process`.
    pub pane: String,
    /// The agent's process; of an agent that is run a turn at a time, the process that runs its turns.
    pub pid: u32,
    /// `tmux`, `window`, `in-process`.
    pub backend: String,
}

/// What became of a member's turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptReply {
    /// The member.
    pub name: AgentName,
    /// It was in a turn, which has ended; false: there was none to end.
    #[serde(rename = "turn")]
    pub was_in_turn: bool,
}

/// Whose mode was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModeReply {
    /// The member, or `team-lead`.
    pub name: AgentName,
    /// Its mode: now, or as soon as its program follows.
    pub mode: PermissionMode,
}

/// How each of several members ended, or did not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitsReply {
    /// One for each member that was asked or killed.
    #[serde(rename = "ended")]
    pub exits: Vec<AgentExit>,
}

/// One member's end.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentExit {
    /// Its name.
    pub name: AgentName,
    /// Its team; a daemon of before does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamName>,
    /// For people: `approved`, `exit 0`, `rejected: …`, `no answer`, `killed`…
    #[serde(rename = "how")]
    pub description: String,
    /// Whether it is gone.
    #[serde(rename = "gone")]
    pub has_exited: bool,
    /// Whether it rests, so that `up --resume` brings it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "rests")]
    pub is_suspended: bool,
    /// The request it was asked with, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// docs/protocol.md section 7, TeamDelete.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteTeamReply {
    /// Always true here; a refusal is a fault.
    pub success: bool,
    /// For people.
    pub message: String,
    /// Which.
    pub team_name: TeamName,
    /// What became of its worktrees.
    #[serde(default, flatten)]
    pub worktrees: RemovedWorktrees,
}

/// Where a member is to be seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LocatePaneReply {
    /// In a pane.
    Pane {
        /// `%14`.
        pane: String,
        /// The tmux server's socket.
        tmux: PathBuf,
        /// It is out of sight: to be shown first.
        #[serde(default)]
        hidden: bool,
    },
    /// It has none: its output is in this file.
    Log {
        /// Absolute.
        path: PathBuf,
    },
}

/// What a pane shows.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePaneReply {
    /// Its lines, as tmux prints them.
    pub screen: String,
}

/// Without what a person sees there: this goes into the log.
impl std::fmt::Debug for CapturePaneReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a screen of {} bytes", self.screen.len())
    }
}
