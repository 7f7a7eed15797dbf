//! The parameters of a spawn: everything that the daemon needs to start a member, and to start the
//! member again.

use crate::delivery_kind::Delivery;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::worker_or_program_that_runs_turns::TurnProgram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;

/// Everything that the daemon needs to start a teammate. `Debug` omits the environment, which can
/// contain secrets.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpawnRequest {
    /// The teammate's team.
    pub team: TeamName,
    /// The requested name.
    pub name: MemberName,
    /// Whether to append `-2`, `-3` … if the name is taken.
    pub unique: bool,
    /// A text that stands for the member's name in the command lines and the environment, because
    /// the daemon may still change the name (see `unique`). The daemon replaces this text with the
    /// final name. The caller chooses a long random text that occurs nowhere else. `None` if the
    /// name is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_placeholder: Option<MemberName>,
    /// Program and arguments. The program is searched in the PATH of `env`. The list is empty only
    /// if `turns` is set.
    pub argv: Vec<String>,
    /// Whether `argv` contains `{color}` or `{lead_session}` for the daemon to fill in.
    #[serde(default)]
    pub has_deferred_variables: bool,
    /// How to start a later spawn that resumes the session. `None`: a later spawn uses `argv`.
    #[serde(default)]
    pub resume_argv: Option<ResumeArgv>,
    /// Command lines that start the member again after its plan is approved. Each key is a
    /// permission mode that the approval can name; one of the keys is `default`. The map is empty
    /// unless the member's mode is `plan` and its program takes a mode only at its start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launches_after_approval: BTreeMap<String, LaunchArgv>,
    /// Whether `argv` contains the prompt. If so, the inbox message with the prompt is not
    /// delivered again.
    #[serde(default)]
    pub prompt_in_args: bool,
    /// Working directory, an absolute path.
    pub cwd: PathBuf,
    /// The agent's environment, except for variables that the pane and the daemon add.
    pub env: BTreeMap<String, String>,
    /// The first message. Empty for none.
    pub prompt: String,
    /// The agent type for the member's entry.
    pub agent_type: Option<String>,
    /// The model for the member's entry.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<PermissionMode>,
    /// How messages reach the agent.
    pub delivery: Delivery,
    /// Texts of the program's dialogs, as its screen shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dialog_patterns: Vec<String>,
    /// Texts by which a usage limit is recognized, as in [`crate::find_usage_limit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limit_patterns: Vec<String>,
    /// How to run the teammate turn by turn. `None`: `argv` is one process for the whole spawn.
    #[serde(default)]
    pub turns: Option<TurnProgram>,
    /// Where the teammate runs.
    #[serde(default)]
    pub backend: Backend,
    /// How the daemon reaches iTerm2. Used only for the backend `iterm2`. `None`: by the program
    /// `it2` in the daemon's PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterm2: Option<Iterm2Access>,
    /// What becomes of unread messages to an earlier teammate of this name.
    #[serde(default)]
    pub earlier_messages: EarlierMessages,
    /// Whether the teammate is started again after a failure.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// The worktree that was created for the teammate, and that contains `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
}

impl SpawnRequest {
    /// Sets the name, and replaces the placeholder by it in all command lines and variables.
    pub fn set_name(&mut self, name: MemberName) {
        if let Some(name_placeholder) = self.name_placeholder.take() {
            let resume = self.resume_argv.iter_mut().flat_map(|resume| &mut resume.argv);
            let turns = self.turns.iter_mut().flat_map(TurnProgram::templates_mut);
            let launches_after_approval =
                self.launches_after_approval.values_mut().flat_map(LaunchArgv::texts_mut);
            let all = self.argv.iter_mut().chain(resume).chain(launches_after_approval);
            let all = all.chain(turns).chain(self.env.values_mut());
            all.for_each(|text| *text = text.replace(name_placeholder.as_str(), name.as_str()));
        }
        self.name = name;
    }
}

impl std::fmt::Debug for SpawnRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "spawn {}@{} {:?} in {}", self.name, self.team, self.argv.first(), self.cwd.display())
    }
}

/// How to start a program that resumes a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeArgv {
    /// Program and arguments. The daemon fills in `{session}` and the variables of the first spawn.
    pub argv: Vec<String>,
}

/// How to start one spawn of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchArgv {
    /// Program and arguments, as in [`SpawnRequest::argv`].
    pub argv: Vec<String>,
    /// How to resume the session later, as in [`SpawnRequest::resume_argv`].
    #[serde(default)]
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
    /// In a pane with its own window.
    Window,
    /// Without a pane, as a child process of the daemon.
    InProcess,
    /// In a session (a split pane) of iTerm2, on macOS.
    Iterm2,
}

impl Backend {
    /// All backends.
    pub const ALL: [Backend; 4] = [Backend::Tmux, Backend::Window, Backend::InProcess, Backend::Iterm2];

    /// The name on the command line and in `teamctl status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::Tmux => "tmux",
            Backend::Window => "window",
            Backend::InProcess => "in-process",
            Backend::Iterm2 => "iterm2",
        }
    }

    /// The `backendType` in the member's entry. Other programs do not know the backend `window`.
    pub fn backend_type(self) -> &'static str {
        match self {
            Backend::Tmux | Backend::Window => "tmux",
            Backend::InProcess => "in-process",
            Backend::Iterm2 => "iterm2",
        }
    }
}

/// How the daemon reaches iTerm2 for one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Iterm2Access {
    /// The absolute path of the program `it2`.
    pub it2: PathBuf,
    /// The caller's session: the UUID in `ITERM_SESSION_ID`. `None` if the caller is not in iTerm2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What happens to unread messages that an earlier teammate of the same name has left in the inbox.
/// Messages in JSON, such as requests and answers, are always discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EarlierMessages {
    /// The new teammate gets them.
    #[default]
    Keep,
    /// They are marked read.
    Discard,
}

/// Whether a teammate is started again after it has exited without being asked to. As text:
/// `never`, `on-failure`, or `on-failure:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^(never|on-failure(:[1-9][0-9]{0,4})?)$")))]
#[serde(try_from = "String", into = "String")]
pub enum RestartPolicy {
    /// The teammate is not started again.
    #[default]
    Never,
    /// After a crash or an exit code other than 0, the teammate is started again under the same
    /// name. The number limits how often this happens within an hour. `None` stands for
    /// [`RestartPolicy::DEFAULT_MAX`].
    OnFailure(Option<NonZeroU16>),
}

impl RestartPolicy {
    /// How often a teammate is started again within an hour, at most. A restart policy with a
    /// number of its own, such as `on-failure:3`, overrides this default.
    pub const DEFAULT_MAX: u16 = 12;
}

impl fmt::Display for RestartPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestartPolicy::Never => f.write_str("never"),
            RestartPolicy::OnFailure(None) => f.write_str("on-failure"),
            RestartPolicy::OnFailure(Some(max)) => write!(f, "on-failure:{max}"),
        }
    }
}

impl From<RestartPolicy> for String {
    fn from(policy: RestartPolicy) -> String {
        policy.to_string()
    }
}

impl FromStr for RestartPolicy {
    type Err = String;

    /// # Errors
    ///
    /// A sentence that names the valid texts.
    fn from_str(text: &str) -> Result<RestartPolicy, String> {
        match (text, text.strip_prefix("on-failure:").map(str::parse)) {
            ("never", _) => Ok(RestartPolicy::Never),
            ("on-failure", _) => Ok(RestartPolicy::OnFailure(None)),
            (_, Some(Ok(max))) => Ok(RestartPolicy::OnFailure(Some(max))),
            _ => Err("one of never, on-failure and on-failure:N with N from 1 to 65535".to_owned()),
        }
    }
}

impl TryFrom<String> for RestartPolicy {
    type Error = String;

    fn try_from(text: String) -> Result<RestartPolicy, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_name_replaces_the_placeholder_everywhere() {
        let request = |name_placeholder: Option<&str>| -> SpawnRequest {
            serde_json::from_value(serde_json::json!({
                "team": "t", "name": "ann", "unique": true, "name_placeholder": name_placeholder, "argv": ["-n", "s0@t", "{name}"],
                "resume_argv": {"argv": ["\"s0\""]}, "launches_after_approval": {"default": {"argv": ["s0"], "resume_argv": {"argv": ["s0"]}}}, "cwd": "/s0", "env": {"WHO": "s0"}, "prompt": "s0 ann",
                "delivery": "turn", "turns": {"per_turn": {
                    "first_argv": ["s0"], "later_argv": ["s0s0"], "session": "no_session", "prompt_prefix": "You are s0.", "mode_args": {"plan": ["s0"]}
                }}
            }))
            .unwrap()
        };
        let mut with_placeholder = request(Some("s0"));
        with_placeholder.set_name(MemberName::parse("ann-2").unwrap());
        assert_eq!(
            (with_placeholder.name.as_str(), with_placeholder.argv),
            ("ann-2", ["-n", "ann-2@t", "{name}"].map(str::to_owned).to_vec())
        );
        let launch = &with_placeholder.launches_after_approval["default"];
        assert_eq!(
            (&launch.argv[0], &launch.resume_argv.as_ref().unwrap().argv[0]),
            (&"ann-2".into(), &"ann-2".into())
        );
        assert_eq!(
            (with_placeholder.env["WHO"].as_str(), with_placeholder.resume_argv.unwrap().argv),
            ("ann-2", vec!["\"ann-2\"".to_owned()])
        );
        assert_eq!(
            (with_placeholder.prompt.as_str(), with_placeholder.cwd),
            ("s0 ann", PathBuf::from("/s0"))
        );
        let Some(TurnProgram::PerTurn(agent)) = with_placeholder.turns else { panic!() };
        assert_eq!((agent.first_argv[0].as_str(), agent.later_argv[0].as_str()), ("ann-2", "ann-2ann-2"));
        assert_eq!(
            (agent.prompt_prefix.as_str(), agent.mode_args["plan"][0].as_str()),
            ("You are ann-2.", "ann-2")
        );
        let mut without_placeholder = request(None);
        without_placeholder.set_name(MemberName::parse("ann-2").unwrap());
        assert_eq!(
            (without_placeholder.name.as_str(), without_placeholder.argv[1].as_str()),
            ("ann-2", "s0@t")
        );
    }

    #[test]
    fn restart_policy_is_one_text() {
        for text in ["never", "on-failure", "on-failure:1", "on-failure:65535"] {
            let policy: RestartPolicy = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(policy).unwrap(), text);
        }
        for text in
            ["", "always", "on-failure:", "on-failure:0", "on-failure:65536", "on-failure:-1", "never:1"]
        {
            assert!(text.parse::<RestartPolicy>().is_err(), "{text}");
        }
    }
}
