//! What can go wrong, as the exit codes tell it: one closed list for the files, the socket and the
//! command line, so that a script can act on a failure without reading prose.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The kinds of failure; each has its exit code (after sysexits.h) and its name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Done for some and not for others; the output says which.
    Partly,
    /// The call's words are off.
    Usage,
    /// Data that does not parse; nothing was changed.
    Data,
    /// No such team, member, task or request.
    NotFound,
    /// No daemon, or it went away.
    NoDaemon,
    /// A fault of ours.
    Internal,
    /// A directory or program that is missing.
    Missing,
    /// Exists already, claimed already.
    Exists,
    /// Input/output error; nothing was changed.
    Io,
    /// Time-out; trying again may help.
    Timeout,
    /// Refused as things stand.
    Refused,
    /// Not permitted for this caller.
    NotPermitted,
    /// Version or configuration.
    Config,
}

/// How the word of a team ends that somebody else is deleting: refused, and over in a moment.
pub const BEING_DELETED: &str = "is being deleted";

impl Kind {
    /// The process exit code that stands for this kind.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Partly => 1,
            Kind::Usage => 64,
            Kind::Data => 65,
            Kind::NotFound => 67,
            Kind::NoDaemon => 69,
            Kind::Internal => 70,
            Kind::Missing => 72,
            Kind::Exists => 73,
            Kind::Io => 74,
            Kind::Timeout => 75,
            Kind::Refused => 76,
            Kind::NotPermitted => 77,
            Kind::Config => 78,
        }
    }
}

/// A failure as it crosses the socket and as `--json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct Fault {
    /// What kind it is; decides the exit code.
    pub kind: Kind,
    /// What could not be done, and why.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(kind: Kind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into(), hint: None }
    }

    /// What the system would not do at a path, with the verb for it.
    pub fn io(verb: &str, path: &Path, cause: &dyn std::fmt::Display) -> Fault {
        Fault::new(Kind::Io, format!("cannot {verb} {}: {cause}", path.display()))
    }

    /// The same fault with the next step named.
    #[must_use]
    pub fn hinted(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }
}
