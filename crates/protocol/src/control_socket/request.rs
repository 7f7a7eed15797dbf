//! Requests of clients to the daemon.

use super::hook_messages::{HookReport, LongPollRequest};
use super::host_requests::{
    AwaitHostRequest, ConfirmTaskRequest, ConnectHomeRequest, ForgetHostRequest, MoveHomeRequest,
    TakeHomeRequest, UseHostRequest,
};
use super::lead_session_and_leads_file::SetLeadRequest;
use super::next_task_messages::NextTaskRequest;
use super::pane_layout_and_visibility::{SetLayoutRequest, SetPersonPaneRequest};
use super::placement::PlaceMemberRequest;
use super::shim_messages::ShimHello;
use super::spawn_request::SpawnRequest;
use super::turn_status::Activity;
use super::worktree_messages::WorktreeRequest;
use crate::allowed_callers::AllowedCallers;
use crate::permission_mode::PermissionMode;
use crate::policy::Policy;
use crate::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Version of the control socket's protocol. The daemon answers a [`Call`] of another version with
/// an error of the kind `config`.
pub const PROTOCOL_VERSION: u32 = 2;

/// The first line of every connection.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    /// The version of the protocol that the caller speaks. The daemon refuses other versions than
    /// its own.
    pub version: u32,
    /// The canonical path of the caller's root. If the daemon has another root, it refuses the
    /// call. `None`: the daemon does not check the root. A call with a token needs no root, because
    /// only the daemon of the caller's own root knows the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Secret of the agent that calls. `None` for a person or a lead session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Idempotency key that the caller chooses. A second call with the same key has no effect and
    /// gets the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The request.
    pub request: Request,
}

impl Call {
    /// A call without a root, a token and an idempotency key.
    pub fn new(request: Request) -> Call {
        Call { version: PROTOCOL_VERSION, root: None, token: None, idempotency_key: None, request }
    }
}

/// The daemon writes `Debug` output to its log, so this output omits the token, which is secret.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let caller = if self.token.is_some() { "an agent asks: " } else { "" };
        write!(f, "{caller}{:?}", self.request)
    }
}

/// A request of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Returns the status of the daemon, its teams and their members.
    Status,
    /// Asks for the same as `status`, but the daemon first looks for dialogs on the screens of
    /// members. It reads a screen only if the profile of the member's program lists dialogs.
    StatusWithScreens,
    /// Creates a team.
    CreateTeam(CreateTeamRequest),
    /// Creates a git worktree for a teammate that will be spawned.
    CreateWorktree(WorktreeRequest),
    /// Spawns a teammate.
    Spawn(Box<SpawnRequest>),
    /// Asks members to shut down, and waits for their exits.
    Shutdown(ShutdownMembersRequest),
    /// Kills members without asking them.
    Kill(MemberSelection),
    /// Interrupts a member's turn. The member keeps running.
    Interrupt(MemberAddress),
    /// Changes the permission mode of a member or of the lead.
    SetMode(SetModeRequest),
    /// Replaces the policy of a team.
    SetPolicy(SetPolicyRequest),
    /// Removes a team and its files.
    DeleteTeam(DeleteTeamRequest),
    /// Returns the location of a member's pane.
    LocatePane(MemberAddress),
    /// Returns the content of a member's pane.
    CapturePane(CapturePaneRequest),
    /// Hides a member's pane.
    HidePane(MemberAddress),
    /// Shows a hidden pane again.
    ShowPane(MemberAddress),
    /// Sets the layout of a team's windows.
    SetLayout(SetLayoutRequest),
    /// Sets the pane beside which the panes of a team are opened.
    SetPersonPane(SetPersonPaneRequest),
    /// Returns the task that a member may claim next.
    NextTask(NextTaskRequest),
    /// Reports whether an agent is in a turn. The call's token identifies the agent.
    ReportActivity(Activity),
    /// Reports an event from a hook of an agent's program.
    ReportHook(HookReport),
    /// Waits until there may be work for the agent of the hook.
    LongPoll(LongPollRequest),
    /// Makes a session the lead of a team, or removes the lead session of a team.
    SetLead(SetLeadRequest),
    /// Shuts down every agent and stops the daemon. Agents that do not answer are killed.
    StopDaemon,
    /// Suspends every agent and stops the daemon. `resume_members` starts the agents again, with
    /// their sessions if possible.
    StopDaemonAndSuspend,
    /// Starts suspended members again. The reply lists them and does not wait for their starts.
    ResumeMembers(ResumeMembersRequest),
    /// Chooses the host of a new member, and reserves a slot there.
    PlaceMember(PlaceMemberRequest),
    /// Prepares a host to run members of a team.
    UseHost(UseHostRequest),
    /// Waits until the files here have all changes of a host.
    AwaitHost(AwaitHostRequest),
    /// Makes this host the home of a team.
    TakeHome(TakeHomeRequest),
    /// Moves the home of a team to another host. The reply follows when that host is the home.
    MoveHome(MoveHomeRequest),
    /// Forgets a host that is gone for good.
    ForgetHost(ForgetHostRequest),
    /// Waits until the home of a mirrored team has decided about the changes of a task.
    ConfirmTask(ConfirmTaskRequest),
    /// Turns the connection into the link with the home of teams (the host with their true files).
    /// After the reply, the connection carries the frames of [`annex_link`](crate::annex_link)
    /// instead of messages.
    ConnectHome(ConnectHomeRequest),
    /// Connects the shim of an agent.
    ConnectShim(ShimHello),
}

impl Request {
    /// The existing team that the request concerns. `None` if the request creates a team, or does
    /// not concern exactly one team.
    pub fn team(&self) -> Option<&TeamName> {
        match self {
            Request::CreateWorktree(request) => Some(&request.team),
            Request::Spawn(request) => Some(&request.team),
            Request::Shutdown(request) => Some(&request.targets.team),
            Request::Kill(members) => Some(&members.team),
            Request::Interrupt(member)
            | Request::LocatePane(member)
            | Request::HidePane(member)
            | Request::ShowPane(member) => Some(&member.team),
            Request::CapturePane(request) => Some(&request.team),
            Request::SetMode(request) => Some(&request.team),
            Request::SetPolicy(request) => Some(&request.team),
            Request::DeleteTeam(request) => Some(&request.team),
            Request::SetLayout(request) => Some(&request.team),
            Request::SetPersonPane(request) => Some(&request.team),
            Request::NextTask(request) => Some(&request.team),
            Request::SetLead(SetLeadRequest::Take(lead)) => Some(&lead.team),
            Request::SetLead(SetLeadRequest::Release(team)) => Some(team),
            Request::ResumeMembers(request) => request.team.as_ref(),
            Request::PlaceMember(request) => Some(&request.team),
            Request::UseHost(request) => Some(&request.team),
            Request::AwaitHost(request) => Some(&request.team),
            Request::ConfirmTask(request) => Some(&request.team),
            Request::TakeHome(request) => Some(&request.team),
            Request::MoveHome(request) => Some(&request.team),
            Request::Status
            | Request::StatusWithScreens
            | Request::CreateTeam(_)
            | Request::ReportActivity(_)
            | Request::ReportHook(_)
            | Request::LongPoll(_)
            | Request::StopDaemon
            | Request::StopDaemonAndSuspend
            | Request::ForgetHost(_)
            | Request::ConnectHome(_)
            | Request::ConnectShim(_) => None,
        }
    }

    /// Who may send the request.
    pub fn allowed_callers(&self) -> AllowedCallers<'_> {
        match self {
            Request::Status
            | Request::StatusWithScreens
            | Request::ReportActivity(_)
            | Request::ReportHook(HookReport { leads_team: None, .. })
            | Request::LongPoll(LongPollRequest { leads_team: None, .. })
            | Request::ConnectShim(_) => AllowedCallers::Everyone,
            Request::LocatePane(member) => AllowedCallers::MemberLeadOrPerson(&member.name),
            Request::CapturePane(request) => AllowedCallers::MemberLeadOrPerson(&request.name),
            Request::NextTask(request) => AllowedCallers::MemberLeadOrPerson(request.owner.as_str()),
            Request::ConfirmTask(request) => AllowedCallers::MemberLeadOrPerson(request.owner.as_str()),
            Request::CreateTeam(_)
            | Request::CreateWorktree(_)
            | Request::Spawn(_)
            | Request::Shutdown(_)
            | Request::Kill(_)
            | Request::Interrupt(_)
            | Request::SetMode(_)
            | Request::SetPolicy(_)
            | Request::DeleteTeam(_)
            | Request::HidePane(_)
            | Request::ShowPane(_)
            | Request::SetLayout(_)
            | Request::SetPersonPane(_)
            | Request::ReportHook(_)
            | Request::LongPoll(_)
            | Request::SetLead(_)
            | Request::StopDaemon
            | Request::StopDaemonAndSuspend
            | Request::PlaceMember(_)
            | Request::UseHost(_)
            | Request::AwaitHost(_)
            | Request::ForgetHost(_)
            | Request::TakeHome(_)
            | Request::MoveHome(_)
            | Request::ConnectHome(_)
            | Request::ResumeMembers(_) => AllowedCallers::LeadOrPerson,
        }
    }
}

/// Creates a team (docs/protocol.md section 7, TeamCreate).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTeamRequest {
    /// The requested name.
    pub team: TeamName,
    /// What the team is for.
    pub description: Option<String>,
    /// The lead's agent type. `None` means `team-lead`.
    pub agent_type: Option<String>,
    /// The default model of the members.
    pub model: Option<String>,
    /// The lead's working directory, an absolute path.
    pub cwd: PathBuf,
    /// Whether to append `-2`, `-3` … if the name is taken.
    pub unique: bool,
    /// The team's policy.
    #[serde(default)]
    pub policy: Policy,
    /// The lead's permission mode.
    #[serde(default)]
    pub lead_mode: Option<PermissionMode>,
    /// Whether the daemon records the team (docs/protocol.md section 10).
    #[serde(default)]
    pub record: bool,
}

impl CreateTeamRequest {
    /// A request with defaults for everything but the name and the lead's working directory.
    pub fn new(team: TeamName, cwd: PathBuf) -> CreateTeamRequest {
        CreateTeamRequest {
            team,
            description: None,
            agent_type: None,
            model: None,
            cwd,
            unique: false,
            policy: Policy::default(),
            lead_mode: None,
            record: false,
        }
    }
}

/// Selects members of a team.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberSelection {
    /// The team.
    pub team: TeamName,
    /// Names of the members. Empty selects all.
    pub names: Vec<String>,
}

/// Asks members to shut down (docs/protocol.md section 8).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShutdownMembersRequest {
    /// The members.
    pub targets: MemberSelection,
    /// The reason, which is shown to the agents.
    pub reason: Option<String>,
    /// Time to wait for the answers, in milliseconds.
    pub grace_ms: u64,
    /// Whether to kill members that do not answer in time.
    pub force: bool,
    /// Whether to reply as soon as the members are asked, without waiting for their answers.
    #[serde(default)]
    pub no_wait: bool,
}

/// Deletes a team (docs/protocol.md section 7, TeamDelete). `Debug` omits the environment
/// variables, which can contain secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteTeamRequest {
    /// The team.
    pub team: TeamName,
    /// Whether to kill the team's members first.
    pub force: bool,
    /// Worktrees to remove despite unsaved work. The work is moved to the trash.
    #[serde(default)]
    pub discard_worktrees: Vec<PathBuf>,
    /// The caller's environment variables that git depends on: `PATH`, `HOME`, `XDG_CONFIG_HOME`
    /// and git's settings. If this map is empty, git gets the daemon's own variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub git_env: BTreeMap<String, String>,
}

impl DeleteTeamRequest {
    /// A request that ends the members first and discards no unsaved work.
    pub fn forced(team: TeamName) -> DeleteTeamRequest {
        DeleteTeamRequest { team, force: true, discard_worktrees: Vec::new(), git_env: BTreeMap::new() }
    }

    /// Whether both requests delete the same team with the same options. Ignores `git_env`, which
    /// depends on the caller's environment.
    pub fn deletes_same(&self, other: &DeleteTeamRequest) -> bool {
        let fields = |request: &DeleteTeamRequest| {
            (request.team.clone(), request.force, request.discard_worktrees.clone())
        };
        fields(self) == fields(other)
    }
}

impl std::fmt::Debug for DeleteTeamRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DeleteTeamRequest { team, force, discard_worktrees, git_env } = self;
        let variables = git_env.len();
        write!(f, "delete {team}, force {force}, discard {discard_worktrees:?}, {variables} variables")
    }
}

/// Starts suspended members again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeMembersRequest {
    /// The team. `None` selects all teams.
    pub team: Option<TeamName>,
}

/// Names one member.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberAddress {
    /// The member's team.
    pub team: TeamName,
    /// Name of the member.
    pub name: String,
}

/// Changes the permission mode of a member or of the lead.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModeRequest {
    /// The member's team.
    pub team: TeamName,
    /// Name of the member, or `team-lead`.
    pub name: String,
    /// The new mode.
    pub mode: PermissionMode,
}

/// Replaces the policy of a team.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPolicyRequest {
    /// The team.
    pub team: TeamName,
    /// The new policy. It also applies to requests that are already open.
    pub policy: Policy,
}

/// Captures the content of a member's pane.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePaneRequest {
    /// The member's team.
    pub team: TeamName,
    /// Name of the member.
    pub name: String,
    /// Number of lines, counted from the end of the history. `None` captures the visible screen.
    pub lines: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::super::reply::CapturePaneReply;
    use super::*;

    #[test]
    fn debug_output_omits_tokens_and_screens() {
        let call = Call { token: Some("a secret".into()), ..Call::new(Request::Status) };
        let shown = format!("{call:?} {:?}", CapturePaneReply { screen: "a secret".to_owned() });
        assert!(!shown.contains("secret"), "{shown}");
    }
}
