//! What can go wrong, as the exit codes tell it: one closed list for the files, the socket and the
//! command line, so that a script can act on a failure without reading prose.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The kinds of failure; each has its exit code (after sysexits.h) and its name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Done for some and not for others; the output says which.
    #[serde(rename = "partly")]
    Partial,
    /// The call's words are off.
    Usage,
    /// Data that does not parse; nothing was changed.
    #[serde(rename = "data")]
    InvalidData,
    /// No such team, member, task or request.
    NotFound,
    /// No daemon, or it went away.
    NoDaemon,
    /// A fault of ours.
    Internal,
    /// A directory or program that is missing.
    #[serde(rename = "missing")]
    MissingPath,
    /// Exists already, claimed already.
    #[serde(rename = "exists")]
    AlreadyExists,
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
pub const BEING_DELETED_SUFFIX: &str = "is being deleted";

impl ErrorKind {
    /// The process exit code that stands for this kind.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Partial => 1,
            ErrorKind::Usage => 64,
            ErrorKind::InvalidData => 65,
            ErrorKind::NotFound => 67,
            ErrorKind::NoDaemon => 69,
            ErrorKind::Internal => 70,
            ErrorKind::MissingPath => 72,
            ErrorKind::AlreadyExists => 73,
            ErrorKind::Io => 74,
            ErrorKind::Timeout => 75,
            ErrorKind::Refused => 76,
            ErrorKind::NotPermitted => 77,
            ErrorKind::Config => 78,
        }
    }
}

/// A failure as it crosses the socket and as `--json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ErrorReport {
    /// What kind it is; decides the exit code.
    pub kind: ErrorKind,
    /// What could not be done, and why.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hint")]
    pub help: Option<String>,
}

impl ErrorReport {
    /// A fault without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorReport {
        ErrorReport { kind, message: message.into(), help: None }
    }

    /// What the system would not do at a path, with the verb for it.
    pub fn from_io(verb: &str, path: &Path, cause: &dyn std::fmt::Display) -> ErrorReport {
        ErrorReport::new(ErrorKind::Io, format!("cannot {verb} {}: {cause}", path.display()))
    }

    /// The same fault with the next step named.
    #[must_use]
    pub fn with_help(self, hint: impl Into<String>) -> ErrorReport {
        ErrorReport { help: Some(hint.into()), ..self }
    }
}
