//! Error kinds with their exit codes, and the error report that the socket and `--json` use.
//!
//! Every error has one of these kinds. So a script can react to the kind of an error, without
//! parsing its text.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Kinds of errors. Each has an exit code (as in sysexits.h) and a name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The command succeeded for some targets and failed for others. The output names both.
    Partial,
    /// The command line is invalid.
    Usage,
    /// Invalid data; nothing was changed.
    InvalidData,
    /// No such team, member, task or request.
    NotFound,
    /// No daemon is running, or the connection to the daemon was lost.
    NoDaemon,
    /// Internal error.
    Internal,
    /// A directory or program does not exist.
    MissingPath,
    /// The name, file or claim exists already.
    AlreadyExists,
    /// Input/output error; nothing was changed.
    Io,
    /// The operation timed out. A retry may succeed.
    Timeout,
    /// Not possible in the current state.
    Refused,
    /// The caller does not have the permission.
    NotPermitted,
    /// Invalid configuration or incompatible version.
    Config,
}

/// The last words of the error message for a team that another client is deleting. When `teamctl
/// run` ends, it deletes its team. If the error message then has these words, `teamctl run` tries
/// again until the team does not exist.
pub const BEING_DELETED_SUFFIX: &str = "is being deleted";

impl ErrorKind {
    /// The process exit code for this kind.
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

/// An error on the control socket and in the output of `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ErrorReport {
    /// The kind, which selects the exit code.
    pub kind: ErrorKind,
    /// What failed, and why.
    pub message: String,
    /// What the user can do next. `None` if there is nothing to suggest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl ErrorReport {
    /// Creates an error without help text.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ErrorReport {
        ErrorReport { kind, message: message.into(), help: None }
    }

    /// Creates an error for a failed I/O operation on `path`. `verb` names the operation, such as
    /// "read".
    pub fn from_io(verb: &str, path: &Path, cause: &dyn std::fmt::Display) -> ErrorReport {
        ErrorReport::new(ErrorKind::Io, format!("cannot {verb} {}: {cause}", path.display()))
    }

    /// Adds a text that says what the user can do next.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> ErrorReport {
        ErrorReport { help: Some(help.into()), ..self }
    }
}
