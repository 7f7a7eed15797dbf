//! How an agent is run: once, for its whole life, or one process a turn; where; and what follows its failure.

use crate::id::RequestId;
use crate::used::Meter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    pub fn word(self) -> &'static str {
        match self {
            Backend::Tmux => "tmux",
            Backend::Window => "window",
            Backend::InProcess => "in-process",
        }
    }

    /// `backendType` of the member: other programs know no windows.
    pub fn member_word(self) -> &'static str {
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
pub enum Restart {
    /// It stays gone.
    #[default]
    Never,
    /// After a crash or an exit code other than 0, under the same name.
    OnFailure,
}

/// What one turn of a teammate runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnProgram {
    /// The built-in worker: the command of a task, with `sh -c`.
    Worker(Worker),
    /// An agent program, which is given the turn's text.
    Agent(TurnAgent),
    /// One process for the whole life, which is given the texts one after the other.
    Standing(StandingAgent),
}

impl TurnProgram {
    /// Whether it reads texts; else it runs commands.
    pub fn reads(&self) -> bool {
        match self {
            TurnProgram::Worker(_) => false,
            TurnProgram::Agent(_) | TurnProgram::Standing(_) => true,
        }
    }

    /// Every text that what is started is made of.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            TurnProgram::Worker(_) => Vec::new(),
            TurnProgram::Agent(agent) => {
                let modes = agent.modes.values_mut().flatten();
                let argv = agent.first.iter_mut().chain(&mut agent.next).chain(modes);
                argv.chain([&mut agent.ahead]).collect()
            }
            TurnProgram::Standing(agent) => {
                agent.driver.iter_mut().chain(&mut agent.argv).chain([&mut agent.ahead]).collect()
            }
        }
    }
}

/// The built-in worker's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// The command for every task, in place of the task's own.
    #[serde(default)]
    pub run: Option<String>,
    /// The command for every message.
    #[serde(default)]
    pub on_message: Option<String>,
    /// A shutdown request that comes in the middle of a turn is refused at once.
    #[serde(default)]
    pub busy_reject: bool,
}

/// A program with a one-shot mode.
///
/// `{prompt}` and `{session}` in an argument stand for the turn's text and the session's id. Where no argument
/// holds `{prompt}` the text comes on standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnAgent {
    /// Program and arguments of the first turn.
    pub first: Vec<String>,
    /// Of every later one; empty: as the first.
    pub next: Vec<String>,
    /// How the turns are one conversation.
    pub session: Session,
    /// Where what it says stands in its output: the string value of this key in lines of JSON; none: the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Where its output tells what it has used up; none: it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Meter>,
    /// Put ahead of the first text of each conversation; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ahead: String,
    /// The arguments for each permission mode that the program has. They stand where an argument is `{mode}`; those
    /// under the empty word where none was given or set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<String, Vec<String>>,
}

/// A program that runs for the whole life behind a driver of ours, which speaks the program's protocol on one side
/// and [`crate::driver`] on the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingAgent {
    /// The driver and its own arguments.
    pub driver: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The mode that it begins in, as the program calls it; none: the program's own choice.
    #[serde(default)]
    pub mode: Option<String>,
    /// What the program calls our permission modes, as far as it can change to them while it runs.
    #[serde(default)]
    pub modes: BTreeMap<String, String>,
    /// Put ahead of the first text of each conversation; empty for nothing.
    #[serde(default)]
    pub ahead: String,
}

/// A conversation over several processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// The program has none: every turn begins anew.
    #[default]
    None,
    /// We choose its id, a UUID, and name it in every turn.
    Ours,
    /// The first turn's output tells it, as the string value of this key in a line of JSON.
    Told {
        /// The key, at any depth.
        key: String,
    },
}

/// How far an agent in plan mode has come. It leaves plan mode by the approval of its plan alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// The next turn that goes well hands in a plan.
    Planning,
    /// Its plan waits for an answer.
    Waiting {
        /// The request's id.
        request: RequestId,
        /// The plan's file, below the root's `plans`.
        file: String,
    },
}
