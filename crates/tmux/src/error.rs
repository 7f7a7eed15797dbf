//! What can go wrong with panes, told so that the reader knows what was not done.
//!
//! The variants are the cases that a caller tells apart; the rest is `Failed`, with tmux's own words. None of
//! them ever means "the pane is gone": that is what an answer that came back says.

use std::io;
use std::path::PathBuf;

use crate::{PaneId, ServerEpoch, WindowId};

/// Why something was not done, or cannot be known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program or the running server is older than 3.2.
    #[error("cannot use {found}: tmux 3.2 or newer is needed, please update it")]
    TooOld {
        /// What it says of itself.
        found: String,
    },
    /// The tmux program did not start.
    #[error("cannot run {}: {source}; is tmux installed?", program.display())]
    ProgramNotStarted {
        /// What was to run.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No connection to the server; nothing was sent.
    #[error("cannot connect to the tmux server at {address}: {cause}")]
    Connect {
        /// As tmux was told it.
        address: String,
        /// In tmux's words, if it had any.
        cause: String,
    },
    /// No answer in time. Whether the act happened is unknown: look.
    #[error("cannot {action}: tmux did not reply in {seconds} s; it may still happen")]
    Timeout {
        /// What was tried.
        action: &'static str,
        /// How long the whole call was given.
        seconds: u64,
    },
    /// The connection ended before the answer. Whether the act happened is unknown: look.
    #[error("cannot {action}: the connection to tmux ended before the answer; it may have happened")]
    Disconnected {
        /// What was tried.
        action: &'static str,
    },
    /// Another server answers at the address now, so every id that we hold is void; nothing was sent to it.
    #[error("cannot go on with tmux server {expected}: {found} answers in its place")]
    OtherServer {
        /// The one that the ids are of.
        expected: ServerEpoch,
        /// The one that is there.
        found: ServerEpoch,
    },
    /// The window cannot be split any further, or is zoomed and must not be laid out anew.
    #[error("cannot split window {window}: no space for a new pane; use another window")]
    NoSpace {
        /// The full one.
        window: WindowId,
    },
    /// The pane does not carry the expected owner, or is not there; nothing was done.
    #[error("cannot {action}: pane {pane} is not ours")]
    NotOwned {
        /// What was tried.
        action: &'static str,
        /// On which pane.
        pane: PaneId,
    },
    /// No such pane on this server.
    #[error("cannot find pane {pane}: the server has none of that id")]
    PaneNotFound {
        /// The one looked for.
        pane: PaneId,
    },
    /// What the caller gave is not usable; nothing was sent.
    #[error("cannot use {what}: {why}")]
    InvalidArgument {
        /// What was given, in a form fit for printing.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// tmux refused, in its own words.
    #[error("cannot {action}: tmux says: {cause}")]
    Rejected {
        /// What was tried.
        action: &'static str,
        /// What tmux said.
        cause: String,
    },
    /// tmux answered something that we do not understand.
    #[error("cannot {action}: tmux gave an unexpected answer {reply:?}")]
    UnexpectedReply {
        /// What was tried.
        action: &'static str,
        /// Its beginning.
        reply: String,
    },
}

impl Error {
    /// tmux found no space for one more pane: "no space for new pane", and 3.7 has other words before it. joining
    /// has words of its own.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self, Error::Rejected { cause, .. } if cause.contains("no space for") || cause.contains("pane too small"))
    }

    /// An answer that does not parse, cut to what fits into a log line.
    pub(crate) fn unexpected_reply(verb: &'static str, answer: &str) -> Error {
        Error::UnexpectedReply { action: verb, reply: answer.chars().take(200).collect() }
    }

    pub(crate) fn invalid_argument(what: &str, why: &'static str) -> Error {
        Error::InvalidArgument { what: format!("{:?}", what.chars().take(80).collect::<String>()), why }
    }
}
