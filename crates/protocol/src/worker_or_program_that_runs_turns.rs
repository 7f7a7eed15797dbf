//! What runs the turns of a teammate: the built-in worker, or an agent program. An agent program
//! runs one process per turn, or one process behind a driver.

use crate::token_and_cost_usage::UsagePaths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum length of a program argument, in bytes. The kernel refuses longer arguments
/// (MAX_ARG_STRLEN, 128 KiB, which includes the final NUL).
pub const MAX_ARGUMENT_BYTES: usize = (128 << 10) - 1;

/// What a teammate runs in its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnProgram {
    /// The built-in worker, which runs the command of a task with `sh -c`.
    Worker(Worker),
    /// An agent program that is started for each turn with the turn's prompt.
    PerTurn(PerTurnProgram),
    /// An agent program that runs for the whole spawn. A driver gives it one prompt after the
    /// other.
    Driven(DrivenProgram),
}

impl TurnProgram {
    /// Whether the program takes prompts. The worker runs commands instead.
    pub fn has_prompts(&self) -> bool {
        match self {
            TurnProgram::Worker(_) => false,
            TurnProgram::PerTurn(_) | TurnProgram::Driven(_) => true,
        }
    }

    /// All strings that can contain template variables.
    pub fn templates_mut(&mut self) -> Vec<&mut String> {
        match self {
            TurnProgram::Worker(_) => Vec::new(),
            TurnProgram::PerTurn(agent) => {
                let modes = agent.mode_args.values_mut().flatten();
                let argv = agent.first_argv.iter_mut().chain(&mut agent.later_argv).chain(modes);
                argv.chain([&mut agent.prompt_prefix]).collect()
            }
            TurnProgram::Driven(agent) => {
                agent.driver.iter_mut().chain(&mut agent.argv).chain([&mut agent.prompt_prefix]).collect()
            }
        }
    }
}

impl TurnProgram {
    /// The permission modes in which the program can run a turn.
    pub fn modes(&self) -> Vec<String> {
        match self {
            TurnProgram::PerTurn(program) => {
                program.mode_args.keys().filter(|mode| !mode.is_empty()).cloned().collect()
            }
            TurnProgram::Driven(program) => program.mode_ids.keys().cloned().collect(),
            TurnProgram::Worker(_) => Vec::new(),
        }
    }
}

/// Settings of the built-in worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// The command for every task. `None` uses each task's own command.
    #[serde(default)]
    pub run: Option<String>,
    /// The command for every message. `None` runs nothing for messages.
    #[serde(default)]
    pub on_message: Option<String>,
    /// Whether the worker rejects a shutdown request that arrives during a turn.
    #[serde(default)]
    pub busy_reject: bool,
}

/// An agent program that runs one process per turn.
///
/// In an argument, `{prompt}` is replaced by the turn's prompt and `{session}` by the session's id.
/// If no argument contains `{prompt}`, the prompt is written to standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerTurnProgram {
    /// Program and arguments of the first turn.
    pub first_argv: Vec<String>,
    /// Program and arguments of later turns. Empty if they are the same as for the first turn.
    pub later_argv: Vec<String>,
    /// How later turns continue the session of the first turn.
    pub session: SessionSource,
    /// Key whose string value in JSON lines of the output is the agent's reply. `None`: the whole
    /// output is the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_key: Option<String>,
    /// Where the output has the usage. `None` if the program reports no usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_paths: Option<UsagePaths>,
    /// Text before the first prompt of each session. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt_prefix: String,
    /// Arguments for each permission mode that the program supports. They are put in the place of
    /// the argument `{mode}`. The empty key has the arguments that are used without a permission
    /// mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mode_args: BTreeMap<String, Vec<String>>,
}

/// An agent program that runs for the whole spawn behind a driver. The driver translates between
/// the shim and the program's own protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrivenProgram {
    /// The driver and its arguments.
    pub driver: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The program's name of the initial mode. `None` leaves the choice to the program.
    #[serde(default)]
    pub initial_mode: Option<String>,
    /// The permission modes to which the program can change while it runs. The keys are teamd's
    /// names of these modes, and the values are the program's own names.
    #[serde(default)]
    pub mode_ids: BTreeMap<String, String>,
    /// Text before the first prompt of each session. May be empty.
    #[serde(default)]
    pub prompt_prefix: String,
}

/// How the processes of several turns share a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// The program has no sessions: each turn starts a new conversation.
    #[default]
    NoSession,
    /// teamd chooses the session id, a UUID, and passes it in every turn.
    Generated,
    /// The output of the first turn contains the session id, as the string value of a key in a JSON
    /// line.
    OutputKey {
        /// The key, at any depth of the JSON line.
        key: String,
    },
}
