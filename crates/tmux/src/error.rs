//! Errors of this crate.
//!
//! Each error that a caller may handle in its own way has a variant. Any other refusal by tmux is
//! `Rejected`, with tmux's message.
//!
//! After an error of a call that kills a pane, the pane may or may not exist. To find out, list the
//! panes.

use std::io;
use std::path::PathBuf;

use crate::{InvalidArgument, PaneId, ServerEpoch, WindowId};

/// Why a call failed, or why its result is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tmux program or the running server is older than 3.2.
    #[error("cannot use {found}: tmux 3.2 or newer is required")]
    TooOld {
        /// The version that the program or server reports.
        found: String,
    },
    /// The tmux program did not start.
    #[error("cannot run {}: {source}; is tmux installed?", program.display())]
    ProgramNotStarted {
        /// The program, as configured.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is no connection to the server. Nothing was sent.
    #[error("cannot connect to the tmux server at {address}: {cause}")]
    Connect {
        /// The address that was passed to tmux.
        address: String,
        /// The message of tmux, or a text of this crate if tmux printed none.
        cause: String,
    },
    /// tmux did not reply in time. The command may have run, or may still run.
    #[error("cannot {action}: tmux did not reply in {seconds} s; the command may still run")]
    Timeout {
        /// What the call does, such as `kill a pane`.
        action: &'static str,
        /// The time limit of the whole call, in seconds.
        seconds: u64,
    },
    /// The connection ended before the reply. The command may have run.
    #[error("cannot {action}: the connection to tmux ended before the reply; the command may have run")]
    Disconnected {
        /// What the call does, such as `kill a pane`.
        action: &'static str,
    },
    /// Another tmux server listens at the address now, so all known pane, window and session ids
    /// are invalid. No command was sent to that server.
    #[error("cannot use tmux server {expected}: server {found} listens at its address now")]
    OtherServer {
        /// The server that the ids belong to.
        expected: ServerEpoch,
        /// The server that replied.
        found: ServerEpoch,
    },
    /// The window has no room for another pane. Either the window is full even when its panes are
    /// tiled, or it is zoomed and its panes must not be tiled.
    #[error("cannot split window {window}: no space for a new pane; use another window")]
    NoSpace {
        /// The window without room.
        window: WindowId,
    },
    /// The pane does not exist or does not have the expected tag, or a user has run `respawn-pane`
    /// in it. The call changed nothing.
    #[error("cannot {action}: pane {pane} is missing or has another owner")]
    NotOwned {
        /// What the call does, such as `kill a pane`.
        action: &'static str,
        /// The pane that the call names.
        pane: PaneId,
    },
    /// The server has no pane with this id.
    #[error("cannot find pane {pane}: the tmux server has no pane with that id")]
    PaneNotFound {
        /// The id that the caller asked for.
        pane: PaneId,
    },
    /// An argument of the caller is not valid, or a value of tmux did not parse.
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    /// tmux refused the command.
    #[error("cannot {action}: tmux: {cause}")]
    Rejected {
        /// What the call does, such as `kill a pane`.
        action: &'static str,
        /// The message of tmux.
        cause: String,
    },
    /// The reply of tmux does not parse.
    #[error("cannot {action}: unexpected reply from tmux: {reply:?}")]
    UnexpectedReply {
        /// What the call does, such as `kill a pane`.
        action: &'static str,
        /// The first 200 characters of the reply.
        reply: String,
    },
}

impl Error {
    /// Whether tmux refused the command because the window has no room for another pane.
    ///
    /// tmux's message contains `no space for` after `split-window` (in version 3.7 with other words
    /// before it), and `pane too small` after `join-pane`.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self, Error::Rejected { cause, .. } if cause.contains("no space for") || cause.contains("pane too small"))
    }

    /// Returns the error for a reply that does not parse. The reply is cut to fit into a log line.
    pub(crate) fn unexpected_reply(action: &'static str, reply: &str) -> Error {
        Error::UnexpectedReply { action, reply: reply.chars().take(200).collect() }
    }
}
