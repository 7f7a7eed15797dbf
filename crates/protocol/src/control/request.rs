//! What a client may ask of the daemon.

use super::{NextTaskRequest, SetLayoutRequest, ShimHello, WorktreeRequest};
use crate::delivery::Delivery;
use crate::name::{AgentName, TeamName};
use crate::permission_mode::PermissionMode;
use crate::policy::Policy;
use crate::turn_program::{Backend, RestartPolicy, TurnProgram};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    ReportHook(super::HookReport),
    /// A hook waits for mail; answered when there is some.
    #[serde(rename = "park")]
    LongPoll(super::LongPollRequest),
    /// The process beside an agent that feeds it by keys looks at its pane, or types.
    #[serde(rename = "keys")]
    TypeInPane(super::PaneInput),
    /// A session takes the lead of a team, or leaves it.
    #[serde(rename = "lead")]
    SetLead(super::SetLeadRequest),
    /// Shut every agent down (killing those that do not answer), then end the daemon.
    #[serde(rename = "down")]
    StopDaemon,
    /// The same, and put them to rest: [`Request::BringBack`] starts each again, with its session where its program has one.
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

/// Who may put a command, which a worker runs, into a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskCommandPolicy {
    /// A person or the lead.
    #[default]
    Lead,
    /// Every member.
    Any,
}

/// Everything that a teammate needs to start. `Debug` leaves out the environment, which may hold secrets.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpawnRequest {
    /// Its team.
    pub team: TeamName,
    /// The wanted name.
    pub name: AgentName,
    /// Take `-2`, `-3` where the name is taken.
    pub unique: bool,
    /// What stands for the name in all that is started, until the daemon has chosen one. Made for this order alone, and
    /// so long that nobody has written it by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<AgentName>,
    /// Program and arguments; the program is found in the PATH of `env`. Never empty, unless it is run a turn
    /// at a time.
    pub argv: Vec<String>,
    /// `argv` holds blanks of [`crate::late`] for the daemon to fill: `{color}`, `{lead_session}`.
    #[serde(default)]
    #[serde(rename = "late")]
    pub has_deferred_variables: bool,
    /// What a next life is started with where the session of the one before is known; none: as `argv` says.
    #[serde(default)]
    #[serde(rename = "resume")]
    pub resume_argv: Option<ResumeArgv>,
    /// In mode `plan`, of a program that takes its mode at its start alone: what the lives after the approval of its plan
    /// are started with, by the mode of the approval. Not empty then, and one is `default`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approved: BTreeMap<String, LaunchArgv>,
    /// `argv` holds the first prompt: its message needs not be handed over again.
    #[serde(default)]
    #[serde(rename = "prompted")]
    pub prompt_in_args: bool,
    /// Absolute.
    pub cwd: PathBuf,
    /// The whole environment of the agent, but for what the pane and the daemon add.
    pub env: BTreeMap<String, String>,
    /// The first message; empty for none.
    pub prompt: String,
    /// Agent type, as written to the member.
    pub agent_type: Option<String>,
    /// Model, as written to the member.
    pub model: Option<String>,
    /// Permission mode.
    pub mode: Option<String>,
    /// How it is fed.
    #[serde(rename = "feed")]
    pub delivery: Delivery,
    /// What its screen shows while it waits at a dialog, as [`crate::dialog`] takes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "dialog")]
    pub dialog_patterns: Vec<String>,
    /// Run it a turn at a time; none: `argv` is the agent for its whole life.
    #[serde(default)]
    pub turns: Option<TurnProgram>,
    /// Where it runs.
    #[serde(default)]
    pub backend: Backend,
    /// What follows its failure.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// The worktree that was made for it, and that `cwd` is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
}

impl SpawnRequest {
    /// Goes by that name from now on, also wherever another stood for it.
    pub fn set_name(&mut self, name: AgentName) {
        if let Some(stand_in) = self.stand_in.take() {
            let resume = self.resume_argv.iter_mut().flat_map(|resume| &mut resume.argv);
            let turns = self.turns.iter_mut().flat_map(TurnProgram::templates_mut);
            let approved = self.approved.values_mut().flat_map(LaunchArgv::texts_mut);
            let all = self.argv.iter_mut().chain(resume).chain(approved);
            let all = all.chain(turns).chain(self.env.values_mut());
            all.for_each(|text| *text = text.replace(stand_in.as_str(), name.as_str()));
        }
        self.name = name;
    }
}

impl std::fmt::Debug for SpawnRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "spawn {}@{} {:?} in {}", self.name, self.team, self.argv.first(), self.cwd.display())
    }
}

/// How a program goes on with a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeArgv {
    /// Program and arguments, with the blanks of [`crate::late`]: `{session}` beside those of a first life.
    pub argv: Vec<String>,
}

/// What one life of a program is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchArgv {
    /// As that of a [`Spawn`].
    pub argv: Vec<String>,
    /// As that of a [`Spawn`].
    #[serde(default)]
    #[serde(rename = "resume")]
    pub resume_argv: Option<ResumeArgv>,
}

impl LaunchArgv {
    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.argv.iter_mut().chain(self.resume_argv.iter_mut().flat_map(|resume| &mut resume.argv))
    }
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

/// In a turn, or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// In a turn.
    Active,
    /// Between turns.
    Idle,
}

#[cfg(test)]
mod tests {
    use super::super::{CapturePaneReply, PaneInput, ScreenReply};
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

    #[test]
    fn a_name_is_taken_wherever_another_stood_for_it_and_nowhere_else() {
        let order = |stand_in: Option<&str>| -> SpawnRequest {
            serde_json::from_value(serde_json::json!({
                "team": "t", "name": "ann", "unique": true, "stand_in": stand_in, "argv": ["-n", "s0@t", "{name}"],
                "resume": {"argv": ["\"s0\""]}, "approved": {"default": {"argv": ["s0"], "resume": {"argv": ["s0"]}}}, "cwd": "/s0", "env": {"WHO": "s0"}, "prompt": "s0 ann",
                "feed": "turn", "turns": {"agent": {
                    "first": ["s0"], "next": ["s0s0"], "session": "none", "ahead": "You are s0.", "modes": {"plan": ["s0"]}
                }}
            }))
            .unwrap()
        };
        let mut one = order(Some("s0"));
        one.set_name(AgentName::parse("ann-2").unwrap());
        assert_eq!(
            (one.name.as_str(), one.argv),
            ("ann-2", ["-n", "ann-2@t", "{name}"].map(str::to_owned).to_vec())
        );
        let life = &one.approved["default"];
        assert_eq!(
            (&life.argv[0], &life.resume_argv.as_ref().unwrap().argv[0]),
            (&"ann-2".into(), &"ann-2".into())
        );
        assert_eq!(
            (one.env["WHO"].as_str(), one.resume_argv.unwrap().argv),
            ("ann-2", vec!["\"ann-2\"".to_owned()])
        );
        assert_eq!((one.prompt.as_str(), one.cwd), ("s0 ann", PathBuf::from("/s0")));
        let Some(TurnProgram::PerTurn(agent)) = one.turns else { panic!() };
        assert_eq!((agent.first_argv[0].as_str(), agent.later_argv[0].as_str()), ("ann-2", "ann-2ann-2"));
        assert_eq!(
            (agent.prompt_prefix.as_str(), agent.mode_args["plan"][0].as_str()),
            ("You are ann-2.", "ann-2")
        );
        let mut other = order(None);
        other.set_name(AgentName::parse("ann-2").unwrap());
        assert_eq!((other.name.as_str(), other.argv[1].as_str()), ("ann-2", "s0@t"));
    }
}
