//! Profiles: how an agent program is started and fed, one TOML file for each. Some are built in; the user's
//! own lie in `$XDG_CONFIG_HOME/teamd/agents` and win over those.
//!
//! A profile is read and checked whole before anything is made of it. It yields an argument vector, never a
//! line for a shell. Format: docs/agents.md.

mod blank;
mod file;
mod order;
mod shelf;

pub(crate) use order::{Facts, Ordered};
pub(crate) use shelf::Shelf;

use protocol::turn::Session;
use std::collections::BTreeMap;

/// One agent program, or the worker that needs none.
#[derive(Debug, PartialEq)]
pub(crate) struct Profile {
    /// The word after `--agent`.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) about: String,
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
    args: Vec<String>,
    feed: Feed,
    model: Option<Vec<String>>,
    modes: BTreeMap<String, Vec<String>>,
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    unset: Vec<String>,
}

/// How the program gets its messages.
#[derive(Debug, PartialEq)]
enum Feed {
    /// One process a turn; `resume` are the arguments of all but the first, empty: the same.
    Turn { resume: Vec<String>, session: Session },
    /// One process for its whole life, which looks by itself.
    Pull,
}

impl Feed {
    fn kind(&self) -> protocol::feed::Feed {
        match self {
            Feed::Turn { .. } => protocol::feed::Feed::Turn,
            Feed::Pull => protocol::feed::Feed::Pull,
        }
    }
}
