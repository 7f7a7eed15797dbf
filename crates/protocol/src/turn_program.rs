//! What a turn runs: the built-in worker, a program per turn, or a program behind a driver.

use crate::usage::UsagePaths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one turn of a teammate runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnProgram {
    /// The built-in worker: the command of a task, with `sh -c`.
    Worker(Worker),
    /// An agent program, which is given the turn's text.
    #[serde(rename = "agent")]
    PerTurn(PerTurnProgram),
    /// One process for the whole life, which is given the texts one after the other.
    #[serde(rename = "standing")]
    Driven(DrivenProgram),
}

impl TurnProgram {
    /// Whether it reads texts; else it runs commands.
    pub fn has_prompts(&self) -> bool {
        match self {
            TurnProgram::Worker(_) => false,
            TurnProgram::PerTurn(_) | TurnProgram::Driven(_) => true,
        }
    }

    /// Every text that what is started is made of.
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
pub struct PerTurnProgram {
    /// Program and arguments of the first turn.
    #[serde(rename = "first")]
    pub first_argv: Vec<String>,
    /// Of every later one; empty: as the first.
    #[serde(rename = "next")]
    pub later_argv: Vec<String>,
    /// How the turns are one conversation.
    pub session: SessionSource,
    /// Where what it says stands in its output: the string value of this key in lines of JSON; none: the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "said")]
    pub reply_key: Option<String>,
    /// Where its output tells what it has used up; none: it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "used")]
    pub usage_paths: Option<UsagePaths>,
    /// Put ahead of the first text of each conversation; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "ahead")]
    pub prompt_prefix: String,
    /// The arguments for each permission mode that the program has. They stand where an argument is `{mode}`; those
    /// under the empty word where none was given or set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "modes")]
    pub mode_args: BTreeMap<String, Vec<String>>,
}

/// A program that runs for the whole life behind a driver of ours, which speaks the program's protocol on one side
/// and `crate::driver` on the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrivenProgram {
    /// The driver and its own arguments.
    pub driver: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The mode that it begins in, as the program calls it; none: the program's own choice.
    #[serde(default)]
    #[serde(rename = "mode")]
    pub initial_mode: Option<String>,
    /// What the program calls our permission modes, as far as it can change to them while it runs.
    #[serde(default)]
    #[serde(rename = "modes")]
    pub mode_ids: BTreeMap<String, String>,
    /// Put ahead of the first text of each conversation; empty for nothing.
    #[serde(default)]
    #[serde(rename = "ahead")]
    pub prompt_prefix: String,
}

/// A conversation over several processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// The program has none: every turn begins anew.
    #[default]
    #[serde(rename = "none")]
    NoSession,
    /// We choose its id, a UUID, and name it in every turn.
    #[serde(rename = "ours")]
    Generated,
    /// The first turn's output tells it, as the string value of this key in a line of JSON.
    #[serde(rename = "told")]
    OutputKey {
        /// The key, at any depth.
        key: String,
    },
}
