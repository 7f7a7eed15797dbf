//! What tmux answered to a script, whichever way it travelled.
//!
//! Bytes until somebody needs text: a pane's screen may hold anything.

use crate::Error;
use crate::control_parser::{BlockStatus, ControlBlock};

/// The answer: what was printed, without a final newline, and the first error, if any.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandReply {
    lines: Vec<Vec<u8>>,
    error: Option<String>,
}

impl CommandReply {
    pub(crate) fn new(text: Vec<u8>, error: Option<String>) -> CommandReply {
        CommandReply { lines: vec![text], error }
    }

    /// Adds the next block; an `if-shell` or an alias gives several for one command.
    pub(crate) fn add_block(&mut self, block: ControlBlock) {
        match block.outcome {
            BlockStatus::Ok => self.lines.extend(block.lines),
            BlockStatus::Error => {
                self.error.get_or_insert(String::from_utf8_lossy(&block.text()).into_owned());
            }
        }
    }

    /// The printed text, with what is not UTF-8 replaced.
    ///
    /// # Errors
    /// `Failed`, in tmux's words.
    pub(crate) fn text(self, verb: &'static str) -> Result<String, Error> {
        match self.error {
            Some(cause) => Err(Error::Rejected { action: verb, cause }),
            None => Ok(String::from_utf8_lossy(&self.lines.join(&b'\n')).into_owned()),
        }
    }

    /// For commands that print nothing.
    ///
    /// # Errors
    /// `Failed`, in tmux's words.
    pub(crate) fn into_result(self, verb: &'static str) -> Result<(), Error> {
        self.text(verb).map(drop)
    }
}
