//! Profiles: how an agent program is started and fed, one TOML file for each. Some are built in; the user's
//! own lie in `$XDG_CONFIG_HOME/teamd/agents` and win over those.
//!
//! A profile is read and checked whole before anything is made of it. It yields an argument vector, never a
//! line for a shell. Format: docs/agents.md.

pub(crate) mod agent_type;
mod delivery;
mod describe;
#[cfg(test)]
mod dialog_tests;
mod launch;
mod parse;
mod registry;
pub(crate) mod settings_patch;
mod template;
mod toml_table;

pub(crate) use launch::{Launch, LaunchFacts, read_only_unsupported};
pub(crate) use registry::{ProfileRegistry, ProfileSource, built_in_summaries};

use protocol::turn_program::SessionSource;
use protocol::usage::UsagePaths;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One agent program, or the worker that needs none.
#[derive(Debug, PartialEq)]
pub(crate) struct Profile {
    /// The word after `--agent`.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) description: String,
    /// Somebody has seen it work; else it was written from the program's documentation.
    pub(crate) is_verified: bool,
    runs: ProfileKind,
}

#[derive(Debug, PartialEq)]
enum ProfileKind {
    /// The built-in worker, which join itself is.
    Worker,
    Program(Box<ProgramSpec>),
}

/// A program of somebody's, as its file says; every blank in it is one that can be filled.
#[derive(Debug, PartialEq)]
struct ProgramSpec {
    program: String,
    feed: DeliverySpec,
    args: Vec<String>,
    /// What is added where there is a first prompt.
    prompt_args: Vec<String>,
    instructions: InstructionDelivery,
    /// What gives it our MCP server.
    mcp: Vec<String>,
    model: Option<Vec<String>>,
    modes: BTreeMap<String, Vec<String>>,
    /// Which of them counts where nobody asks for one.
    default_mode: Option<String>,
    agent_types: BTreeMap<String, Vec<String>>,
    /// What limits it to some of its tools.
    only_tools: Option<Vec<String>>,
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    /// The team's own tools, as this program calls them: on every list of allowed ones.
    team_tools: Vec<String>,
    env: BTreeMap<String, String>,
    /// Variables that are taken out of every agent's environment, and not out of this one's.
    keep_env: Vec<String>,
    remove_env: Vec<String>,
    settings: Vec<settings_patch::SettingsPatch>,
    /// What its screen shows while it waits at a dialog.
    dialogs: Vec<String>,
    /// The arguments that make it print its version, and its help.
    version_args: Vec<String>,
    help_args: Vec<String>,
    /// Options that it takes and its help keeps to itself.
    undocumented_options: Vec<String>,
}

/// How it learns about its team.
#[derive(Debug, PartialEq, Eq)]
enum InstructionDelivery {
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
pub(crate) struct ReplySource {
    #[serde(default)]
    #[serde(rename = "file")]
    pub(crate) file_key: Option<String>,
    #[serde(rename = "told")]
    pub(crate) key: String,
}

/// Where a program with hooks tells what its session has used up: in the lines of JSON of the file that stands in its
/// events under `file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageFile {
    pub(crate) file: String,
    pub(crate) meter: UsagePaths,
}

/// How the program gets its messages.
#[derive(Debug, PartialEq)]
enum DeliverySpec {
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
    /// They are typed into its pane, where the line under the cursor looks like one of `ready`.
    Keys { resume_args: Vec<String>, prompt_lines: Vec<String> },
}

impl Profile {
    /// How the program's turn-end hook hands a text over, and how long it may wait, ms; none for another feed.
    pub(crate) fn hook_delivery(&self) -> Option<(&Map<String, Value>, Option<u64>)> {
        match &self.runs {
            ProfileKind::Program(program) => match &program.feed {
                DeliverySpec::Hook { hook_response: answer, max_wait: park, .. } => Some((answer, *park)),
                _ => None,
            },
            ProfileKind::Worker => None,
        }
    }

    /// The key of its turn-end event that says whether it went on with what was handed over; none: it does not say.
    pub(crate) fn continued_key(&self) -> Option<&str> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { continued_key: taken, .. } = &program.feed else { return None };
        taken.as_deref()
    }

    /// Where a turn-end event of its has the agent's last words; none: where most have them.
    pub(crate) fn reply_source(&self) -> Option<&ReplySource> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { reply: said, .. } = &program.feed else { return None };
        said.as_ref()
    }

    /// Where it tells what its session has used up; none: nowhere.
    pub(crate) fn usage_file(&self) -> Option<&UsageFile> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Hook { usage: used, .. } = &program.feed else { return None };
        used.as_ref()
    }
}

impl Profile {
    /// How its screen tells that text may be typed; none for another feed.
    pub(crate) fn prompt_patterns(&self) -> Option<crate::keys::PromptPatterns> {
        let ProfileKind::Program(program) = &self.runs else { return None };
        let DeliverySpec::Keys { prompt_lines: ready, .. } = &program.feed else { return None };
        Some(crate::keys::PromptPatterns { prompt_lines: ready.clone(), dialog: program.dialogs.clone() })
    }
}

impl DeliverySpec {
    fn delivery(&self) -> protocol::delivery::Delivery {
        match self {
            DeliverySpec::Native { .. } => protocol::delivery::Delivery::Native,
            DeliverySpec::Hook { .. } => protocol::delivery::Delivery::Hook,
            DeliverySpec::Acp { .. } => protocol::delivery::Delivery::Acp,
            DeliverySpec::Turn { .. } => protocol::delivery::Delivery::Turn,
            DeliverySpec::Pull => protocol::delivery::Delivery::Pull,
            DeliverySpec::Keys { .. } => protocol::delivery::Delivery::Keys,
        }
    }

    /// The arguments of a later turn or life; empty: as the first.
    fn resume_args(&self) -> &[String] {
        match self {
            DeliverySpec::Native { resume_args: resume }
            | DeliverySpec::Hook { resume_args: resume, .. }
            | DeliverySpec::Turn { resume_args: resume, .. }
            | DeliverySpec::Keys { resume_args: resume, .. } => resume,
            DeliverySpec::Acp { .. } | DeliverySpec::Pull => &[],
        }
    }
}

/// See [`crate::fuzz_profile`].
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &str) {
    parse::parse_profile("fuzz", "fuzz.toml", text).ok();
}
