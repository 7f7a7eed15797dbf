//! Profiles: how an agent program is started and fed, one TOML file for each. Some are built in; the user's
//! own lie in `$XDG_CONFIG_HOME/teamd/agents` and win over those.
//!
//! A profile is read and checked whole before anything is made of it. It yields an argument vector, never a
//! line for a shell. Format: docs/agents.md.

mod blank;
pub(crate) mod definition;
#[cfg(test)]
mod dialogs;
mod feed;
mod file;
mod keys;
mod order;
pub(crate) mod setup;
mod shelf;
mod view;

pub(crate) use order::{Facts, Ordered, writes};
pub(crate) use shelf::{Origin, Shelf, in_a_line};

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
    pub(crate) about: String,
    /// Somebody has seen it work; else it was written from the program's documentation.
    pub(crate) tried: bool,
    runs: Runs,
}

#[derive(Debug, PartialEq)]
enum Runs {
    /// The built-in worker, which join itself is.
    Worker,
    Program(Box<Program>),
}

/// A program of somebody's, as its file says; every blank in it is one that can be filled.
#[derive(Debug, PartialEq)]
struct Program {
    program: String,
    feed: Feed,
    args: Vec<String>,
    /// What is added where there is a first prompt.
    prompt: Vec<String>,
    instructions: Instructions,
    /// What gives it our MCP server.
    mcp: Vec<String>,
    model: Option<Vec<String>>,
    modes: BTreeMap<String, Vec<String>>,
    /// Which of them counts where nobody asks for one.
    mode: Option<String>,
    types: BTreeMap<String, Vec<String>>,
    /// What limits it to some of its tools.
    tools: Option<Vec<String>>,
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    /// The team's own tools, as this program calls them: on every list of allowed ones.
    team_tools: Vec<String>,
    env: BTreeMap<String, String>,
    /// Variables that are taken out of every agent's environment, and not out of this one's.
    pass: Vec<String>,
    unset: Vec<String>,
    setup: Vec<setup::Piece>,
    /// What its screen shows while it waits at a dialog.
    dialog: Vec<String>,
    /// The arguments that make it print its version, and its help.
    version: Vec<String>,
    help: Vec<String>,
    /// Options that it takes and its help keeps to itself.
    hidden: Vec<String>,
}

/// How it learns about its team.
#[derive(Debug, PartialEq, Eq)]
enum Instructions {
    /// It knows, or needs not.
    None,
    /// The text goes ahead of its first prompt.
    Ahead,
    /// It has arguments for that.
    Arguments(Vec<String>),
}

/// Where a program with hooks tells what its agent said at last: the string value of `told` in the turn-end event, or
/// the last one in the lines of JSON of the file that stands in that event under `file`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    #[serde(default)]
    pub(crate) file: Option<String>,
    pub(crate) told: String,
}

/// Where a program with hooks tells what its session has used up: in the lines of JSON of the file that stands in its
/// events under `file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) file: String,
    pub(crate) meter: UsagePaths,
}

/// How the program gets its messages.
#[derive(Debug, PartialEq)]
enum Feed {
    /// It reads the files itself. `resume` are here and below the arguments of a life that goes on with the
    /// session of the one before, empty: the same.
    Native { resume: Vec<String> },
    /// Its turn-end hook hands them over, as this object with the text filled in. It is asked to wait no longer than
    /// `park`, milliseconds. `taken` is the key of its turn-end event that is true where it went on with that answer.
    Hook {
        resume: Vec<String>,
        answer: Map<String, Value>,
        park: Option<u64>,
        said: Option<Words>,
        used: Option<Receipt>,
        taken: Option<String>,
    },
    /// One long-lived process that speaks the Agent Client Protocol; what it calls our permission modes, as far as
    /// its sessions have them.
    /// `counts_on`: what it tells to have used up, in each turn, is all since its start.
    Acp { modes: BTreeMap<String, String>, counts_on: bool },
    /// One process a turn; `resume` are the arguments of all but the first, empty: the same. `said` is the key under
    /// which its lines of JSON hold what it says.
    Turn { resume: Vec<String>, session: SessionSource, said: Option<String>, used: Option<UsagePaths> },
    /// One process for its whole life, which looks by itself.
    Pull,
    /// They are typed into its pane, where the line under the cursor looks like one of `ready`.
    Keys { resume: Vec<String>, ready: Vec<String> },
}

impl Profile {
    /// How the program's turn-end hook hands a text over, and how long it may wait, ms; none for another feed.
    pub(crate) fn hooks(&self) -> Option<(&Map<String, Value>, Option<u64>)> {
        match &self.runs {
            Runs::Program(program) => match &program.feed {
                Feed::Hook { answer, park, .. } => Some((answer, *park)),
                _ => None,
            },
            Runs::Worker => None,
        }
    }

    /// The key of its turn-end event that says whether it went on with what was handed over; none: it does not say.
    pub(crate) fn taken(&self) -> Option<&str> {
        let Runs::Program(program) = &self.runs else { return None };
        let Feed::Hook { taken, .. } = &program.feed else { return None };
        taken.as_deref()
    }

    /// Where a turn-end event of its has the agent's last words; none: where most have them.
    pub(crate) fn last_words(&self) -> Option<&Words> {
        let Runs::Program(program) = &self.runs else { return None };
        let Feed::Hook { said, .. } = &program.feed else { return None };
        said.as_ref()
    }

    /// Where it tells what its session has used up; none: nowhere.
    pub(crate) fn receipt(&self) -> Option<&Receipt> {
        let Runs::Program(program) = &self.runs else { return None };
        let Feed::Hook { used, .. } = &program.feed else { return None };
        used.as_ref()
    }
}

impl Profile {
    /// How its screen tells that text may be typed; none for another feed.
    pub(crate) fn prompt_on_screen(&self) -> Option<crate::keys::Prompt> {
        let Runs::Program(program) = &self.runs else { return None };
        let Feed::Keys { ready, .. } = &program.feed else { return None };
        Some(crate::keys::Prompt { ready: ready.clone(), dialog: program.dialog.clone() })
    }
}

impl Feed {
    fn kind(&self) -> protocol::delivery::Delivery {
        match self {
            Feed::Native { .. } => protocol::delivery::Delivery::Native,
            Feed::Hook { .. } => protocol::delivery::Delivery::Hook,
            Feed::Acp { .. } => protocol::delivery::Delivery::Acp,
            Feed::Turn { .. } => protocol::delivery::Delivery::Turn,
            Feed::Pull => protocol::delivery::Delivery::Pull,
            Feed::Keys { .. } => protocol::delivery::Delivery::Keys,
        }
    }

    /// The arguments of a later turn or life; empty: as the first.
    fn resume(&self) -> &[String] {
        match self {
            Feed::Native { resume }
            | Feed::Hook { resume, .. }
            | Feed::Turn { resume, .. }
            | Feed::Keys { resume, .. } => resume,
            Feed::Acp { .. } | Feed::Pull => &[],
        }
    }
}

/// See [`crate::fuzz_profile`].
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &str) {
    file::parse("fuzz", "fuzz.toml", text).ok();
}
