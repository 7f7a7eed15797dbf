//! A profile as its file says, after it was checked.

use crate::settings_patch::SettingsPatch;
use protocol::turn_program::SessionSource;
use protocol::usage::UsagePaths;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One agent program, or the worker that needs none.
#[derive(Debug, PartialEq)]
pub struct Profile {
    /// The word after `--agent`.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Somebody has seen it work; else it was written from the program's documentation.
    pub is_verified: bool,
    pub(crate) runs: ProfileKind,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ProfileKind {
    /// The built-in worker, which join itself is.
    Worker,
    Program(Box<ProgramSpec>),
}

/// A program of somebody's, as its file says; every blank in it is one that can be filled.
#[derive(Debug, PartialEq)]
pub(crate) struct ProgramSpec {
    pub(crate) program: String,
    pub(crate) feed: DeliverySpec,
    pub(crate) args: Vec<String>,
    /// What is added where there is a first prompt.
    pub(crate) prompt_args: Vec<String>,
    pub(crate) instructions: InstructionDelivery,
    /// What gives it our MCP server.
    pub(crate) mcp: Vec<String>,
    pub(crate) model: Option<Vec<String>>,
    pub(crate) modes: BTreeMap<String, Vec<String>>,
    /// Which of them counts where nobody asks for one.
    pub(crate) default_mode: Option<String>,
    pub(crate) agent_types: BTreeMap<String, Vec<String>>,
    /// What limits it to some of its tools.
    pub(crate) only_tools: Option<Vec<String>>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Option<Vec<String>>,
    /// The team's own tools, as this program calls them: on every list of allowed ones.
    pub(crate) team_tools: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Variables that are taken out of every agent's environment, and not out of this one's.
    pub(crate) keep_env: Vec<String>,
    pub(crate) remove_env: Vec<String>,
    pub(crate) settings: Vec<SettingsPatch>,
    /// What its screen shows while it waits at a dialog.
    pub(crate) dialogs: Vec<String>,
    /// The arguments that make it print its version, and its help.
    pub(crate) version_args: Vec<String>,
    pub(crate) help_args: Vec<String>,
    /// Options that it takes and its help keeps to itself.
    pub(crate) undocumented_options: Vec<String>,
}

/// How it learns about its team.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InstructionDelivery {
    /// It knows, or needs not.
    Nothing,
    /// The text goes ahead of its first prompt.
    Prepended,
    /// It has arguments for that.
    Arguments(Vec<String>),
}

/// Where a program with hooks tells what its agent said at last: the string value of `told` in the turn-end event, or
/// the last one in the lines of JSON of the file that stands in that event under `file`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplySource {
    #[serde(default)]
    #[serde(rename = "file")]
    pub file_key: Option<String>,
    #[serde(rename = "told")]
    pub key: String,
}

/// Where a program with hooks tells what its session has used up: in the lines of JSON of the file that stands in its
/// events under `file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFile {
    pub file: String,
    pub meter: UsagePaths,
}

/// How the program gets its messages.
#[derive(Debug, PartialEq)]
pub(crate) enum DeliverySpec {
    /// It reads the files itself. `resume` are here and below the arguments of a life that goes on with the
    /// session of the one before, empty: the same.
    Native { resume_args: Vec<String> },
    /// Its turn-end hook hands them over, as this object with the text filled in. It is asked to wait no longer than
    /// `park`, milliseconds. `taken` is the key of its turn-end event that is true where it went on with that answer.
    Hook {
        resume_args: Vec<String>,
        hook_response: Map<String, Value>,
        max_wait: Option<u64>,
        reply: Option<ReplySource>,
        usage: Option<UsageFile>,
        continued_key: Option<String>,
    },
    /// One long-lived process that speaks the Agent Client Protocol; what it calls our permission modes, as far as
    /// its sessions have them.
    /// `counts_on`: what it tells to have used up, in each turn, is all since its start.
    Acp { modes: BTreeMap<String, String>, counts_on: bool },
    /// One process a turn; `resume` are the arguments of all but the first, empty: the same. `said` is the key under
    /// which its lines of JSON hold what it says.
    Turn {
        resume_args: Vec<String>,
        session: SessionSource,
        reply: Option<String>,
        usage: Option<UsagePaths>,
    },
    /// One process for its whole life, which looks by itself.
    Pull,
}

impl Profile {
    /// How the program's turn-end hook hands a text over, and how long it may wait, ms; none for another feed.
    pub fn hook_delivery(&self) -> Option<(&Map<String, Value>, Option<u64>)> {
        match &self.runs {
            ProfileKind::Program(program) => match &program.feed {
                DeliverySpec::Hook { hook_response: answer, max_wait: park, .. } => Some((answer, *park)),
                _ => None,
            },
            ProfileKind::Worker => None,
        }
    }

    /// The key of its turn-end event that says whether it went on with what was handed over; none: it does not say.
    pub fn continued_key(&self) -> Option<&str> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { continued_key: taken, .. } = &program.feed else { return None };
        taken.as_deref()
    }

    /// Where a turn-end event of its has the agent's last words; none: where most have them.
    pub fn reply_source(&self) -> Option<&ReplySource> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { reply: said, .. } = &program.feed else { return None };
        said.as_ref()
    }

    /// Where it tells what its session has used up; none: nowhere.
    pub fn usage_file(&self) -> Option<&UsageFile> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { usage: used, .. } = &program.feed else { return None };
        used.as_ref()
    }
}

impl DeliverySpec {
    pub(crate) fn delivery(&self) -> protocol::delivery::Delivery {
        match self {
            DeliverySpec::Native { .. } => protocol::delivery::Delivery::Native,
            DeliverySpec::Hook { .. } => protocol::delivery::Delivery::Hook,
            DeliverySpec::Acp { .. } => protocol::delivery::Delivery::Acp,
            DeliverySpec::Turn { .. } => protocol::delivery::Delivery::Turn,
            DeliverySpec::Pull => protocol::delivery::Delivery::Pull,
        }
    }

    /// The arguments of a later turn or life; empty: as the first.
    pub(crate) fn resume_args(&self) -> &[String] {
        match self {
            DeliverySpec::Native { resume_args: resume }
            | DeliverySpec::Hook { resume_args: resume, .. }
            | DeliverySpec::Turn { resume_args: resume, .. } => resume,
            DeliverySpec::Acp { .. } | DeliverySpec::Pull => &[],
        }
    }
}
