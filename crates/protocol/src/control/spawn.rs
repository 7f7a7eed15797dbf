//! The parameters of a spawn: what the daemon needs to start a member, and to start it again.

use crate::delivery::Delivery;
use crate::name::{AgentName, TeamName};
use crate::turn_program::TurnProgram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// `argv` holds blanks of `crate::has_deferred_variables` for the daemon to fill: `{color}`, `{lead_session}`.
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
    /// What its screen shows while it waits at a dialog, as `crate::dialog` takes it.
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
    /// Program and arguments, with the blanks of `crate::has_deferred_variables`: `{session}` beside those of a first life.
    pub argv: Vec<String>,
}

/// What one life of a program is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchArgv {
    /// As that of a `Spawn`.
    pub argv: Vec<String>,
    /// As that of a `Spawn`.
    #[serde(default)]
    #[serde(rename = "resume")]
    pub resume_argv: Option<ResumeArgv>,
}

impl LaunchArgv {
    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.argv.iter_mut().chain(self.resume_argv.iter_mut().flat_map(|resume| &mut resume.argv))
    }
}

/// Where a teammate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// In a pane of the team's windows.
    #[default]
    Tmux,
    /// In a pane that has a window of its own.
    Window,
    /// Without a pane, under the daemon.
    InProcess,
}

impl Backend {
    /// The word on the command line and in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::Tmux => "tmux",
            Backend::Window => "window",
            Backend::InProcess => "in-process",
        }
    }

    /// `backendType` of the member: other programs know no windows.
    pub fn backend_type(self) -> &'static str {
        match self {
            Backend::Tmux | Backend::Window => "tmux",
            Backend::InProcess => "in-process",
        }
    }
}

/// Whether a teammate that ended without being asked is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// It stays gone.
    #[default]
    Never,
    /// After a crash or an exit code other than 0, under the same name.
    OnFailure,
}

#[cfg(test)]
mod tests {
    use super::*;

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
