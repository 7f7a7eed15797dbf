//! What a client may ask of the daemon.

use super::hook::{HookReport, LongPollRequest};
use super::layout::SetLayoutRequest;
use super::lead::SetLeadRequest;
use super::next_task::NextTaskRequest;
use super::pane_input::PaneInput;
use super::shim::ShimHello;
use super::spawn::SpawnRequest;
use super::turn_status::Activity;
use super::worktree::WorktreeRequest;
use crate::name::TeamName;
use crate::permission_mode::PermissionMode;
use crate::policy::Policy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The first line of every conversation.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    /// The version the caller speaks: 1.
    #[serde(rename = "v")]
    pub version: u32,
    /// The secret of the agent that asks; absent for a person or a lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Chosen by the caller: a second call with the same one gets the first one's answer and does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "once")]
    pub idempotency_key: Option<String>,
    /// What is asked.
    pub request: Request,
}

/// Without the token, which opens doors: this goes into the log.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.token.is_some() { "an agent asks: " } else { "" };
        write!(f, "{who}{:?}", self.request)
    }
}

/// One request of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Teams and members as the daemon sees them.
    Status,
    /// The same, with a look at the screens of those whose dialogs are known.
    #[serde(rename = "status_on_screen")]
    StatusWithScreens,
    /// Make a team.
    #[serde(rename = "create")]
    CreateTeam(CreateTeamRequest),
    /// A git worktree for a teammate that is to be started.
    #[serde(rename = "worktree")]
    CreateWorktree(WorktreeRequest),
    /// Start a teammate.
    Spawn(Box<SpawnRequest>),
    /// Ask members to end, and wait for it.
    Shutdown(ShutdownMembersRequest),
    /// End members without asking.
    Kill(MemberSelection),
    /// End a member's turn, not the member.
    Interrupt(MemberAddress),
    /// Change the permission mode of a member, or of the lead.
    SetMode(SetModeRequest),
    /// Replace the policy of a team.
    SetPolicy(SetPolicyRequest),
    /// Remove a team and its files.
    #[serde(rename = "delete")]
    DeleteTeam(DeleteTeamRequest),
    /// Where a member's pane is.
    #[serde(rename = "locate")]
    LocatePane(MemberAddress),
    /// What a member's pane shows.
    #[serde(rename = "capture")]
    CapturePane(CapturePaneRequest),
    /// Take a member's pane out of sight.
    #[serde(rename = "hide")]
    HidePane(MemberAddress),
    /// Bring it back.
    #[serde(rename = "show")]
    ShowPane(MemberAddress),
    /// Give a team's windows a layout.
    #[serde(rename = "layout")]
    SetLayout(SetLayoutRequest),
    /// Which task a member may take up.
    NextTask(NextTaskRequest),
    /// An agent says whether it is in a turn; known by its token.
    #[serde(rename = "activity")]
    ReportActivity(Activity),
    /// A hook of an agent's program tells what happened.
    #[serde(rename = "hook")]
    ReportHook(HookReport),
    /// A hook waits for mail; answered when there is some.
    #[serde(rename = "park")]
    LongPoll(LongPollRequest),
    /// The process beside an agent that feeds it by keys looks at its pane, or types.
    #[serde(rename = "keys")]
    TypeInPane(PaneInput),
    /// A session takes the lead of a team, or leaves it.
    #[serde(rename = "lead")]
    SetLead(SetLeadRequest),
    /// Shut every agent down (killing those that do not answer), then end the daemon.
    #[serde(rename = "down")]
    StopDaemon,
    /// The same, and put them to rest: `RequestItem::BringBack` starts each again, with its session where its program has one.
    #[serde(rename = "rest")]
    StopDaemonAndSuspend,
    /// Start those again that rest; answered at once with who they are.
    #[serde(rename = "bring_back")]
    ResumeMembers(ResumeMembersRequest),
    /// The first process of a pane says who it is.
    #[serde(rename = "join")]
    ConnectShim(ShimHello),
}

/// See docs/protocol.md section 7, TeamCreate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTeamRequest {
    /// The wanted name.
    pub team: TeamName,
    /// What the team is for.
    pub description: Option<String>,
    /// The lead's agent type, where it is not `team-lead`.
    pub agent_type: Option<String>,
    /// The model of members that name none.
    pub model: Option<String>,
    /// The lead's working directory, absolute.
    pub cwd: PathBuf,
    /// Take `-2`, `-3` where the name is taken.
    pub unique: bool,
    /// Who answers its members' requests, and who may put a command into a task.
    #[serde(default)]
    pub policy: Policy,
    /// The lead's permission mode.
    #[serde(default)]
    pub lead_mode: Option<PermissionMode>,
}

/// Which members of a team.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberSelection {
    /// Their team.
    pub team: TeamName,
    /// Their names; empty means all.
    pub names: Vec<String>,
}

/// See docs/protocol.md section 8.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShutdownMembersRequest {
    /// Whom.
    pub targets: MemberSelection,
    /// Shown to the agent.
    pub reason: Option<String>,
    /// How long an answer may take.
    pub grace_ms: u64,
    /// End it where no answer came.
    pub force: bool,
    /// Answer as soon as they are asked, and don't wait for what becomes of it.
    #[serde(default)]
    #[serde(rename = "at_once")]
    pub no_wait: bool,
}

/// See docs/protocol.md section 7, TeamDelete.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteTeamRequest {
    /// Which.
    pub team: TeamName,
    /// End its members first.
    pub force: bool,
    /// Worktrees that go although there is unsaved work in them, which is put into the trash first.
    #[serde(default)]
    #[serde(rename = "discard")]
    pub discard_worktrees: Vec<PathBuf>,
}

/// Whom to start again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeMembersRequest {
    /// Those of this team; none: of all.
    pub team: Option<TeamName>,
}

/// Which member.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberAddress {
    /// The member's team.
    pub team: TeamName,
    /// The member.
    pub name: String,
}

/// Whose mode, and which.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModeRequest {
    /// The member's team.
    pub team: TeamName,
    /// The member, or `team-lead`.
    pub name: String,
    /// The mode.
    pub mode: PermissionMode,
}

/// Whose policy, and which: the whole of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPolicyRequest {
    /// The team.
    pub team: TeamName,
    /// From now on, also for what waits.
    pub policy: Policy,
}

/// Which pane, and how much of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePaneRequest {
    /// The member's team.
    pub team: TeamName,
    /// The member.
    pub name: String,
    /// That many lines, counted from the end of the history; none: the visible screen.
    pub lines: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::super::pane_input::ScreenReply;
    use super::super::reply::CapturePaneReply;
    use super::*;

    #[test]
    fn what_opens_doors_and_what_is_on_a_screen_is_in_no_log() {
        let keys = PaneInput::Type { cursor: (1, 2), text: "a secret".into() };
        let call = Call {
            version: 1,
            token: Some("a secret".into()),
            idempotency_key: None,
            request: Request::TypeInPane(keys),
        };
        let screen = "a secret".to_owned();
        let replies = (CapturePaneReply { screen: screen.clone() }, ScreenReply { screen, cursor: (0, 0) });
        let shown = format!("{call:?} {replies:?}");
        assert!(!shown.contains("secret") && shown.contains("paste 8 bytes"), "{shown}");
    }
}
