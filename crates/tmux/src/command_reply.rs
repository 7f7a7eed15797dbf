//! The reply of tmux to a command list, from a control connection or from a tmux process.
//!
//! The reply is kept as bytes until a caller needs text, because the screen of a pane may contain
//! any bytes.

use crate::Error;
use crate::control_parser::{BlockStatus, ControlBlock};

/// What tmux printed, without the final newline, and the first error message, if any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandReply {
    /// What the call does, for errors.
    action: &'static str,
    lines: Vec<Vec<u8>>,
    error: Option<String>,
}

impl CommandReply {
    /// Returns a reply without any output.
    pub(crate) fn new(action: &'static str) -> CommandReply {
        CommandReply { action, lines: Vec::new(), error: None }
    }

    /// Returns the reply of a process. `error` is its standard error if it failed.
    pub(crate) fn from_process(action: &'static str, text: Vec<u8>, error: Option<String>) -> CommandReply {
        CommandReply { action, lines: vec![text], error }
    }

    /// Adds the next block. An `if-shell` or an alias causes several blocks for one command.
    pub(crate) fn add_block(&mut self, block: ControlBlock) {
        match block.outcome {
            BlockStatus::Ok => self.lines.extend(block.lines),
            BlockStatus::Error => {
                self.error.get_or_insert(String::from_utf8_lossy(&block.text()).into_owned());
            }
        }
    }

    /// Returns the text that tmux printed. Invalid UTF-8 is replaced by `U+FFFD`.
    ///
    /// # Errors
    ///
    /// `Rejected` with tmux's message if a command failed.
    pub(crate) fn text(self) -> Result<String, Error> {
        match self.error {
            Some(cause) => Err(Error::Rejected { action: self.action, cause }),
            None => Ok(String::from_utf8_lossy(&self.lines.join(&b'\n')).into_owned()),
        }
    }

    /// Parses the text that tmux printed.
    ///
    /// # Errors
    ///
    /// `Rejected` if a command failed, `UnexpectedReply` if `parse` returns `None`.
    pub(crate) fn parse<T>(self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        let action = self.action;
        let text = self.text()?;
        parse(&text).ok_or_else(|| Error::unexpected_reply(action, &text))
    }

    /// Parses each line that tmux printed.
    ///
    /// # Errors
    ///
    /// `Rejected` if a command failed. `UnexpectedReply` if `parse` returns `None`, with the first
    /// line for which it does.
    pub(crate) fn parse_lines<T>(self, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Error> {
        let action = self.action;
        let parse_line = |line| parse(line).ok_or_else(|| Error::unexpected_reply(action, line));
        self.text()?.lines().map(parse_line).collect()
    }

    /// Checks that the commands succeeded, and drops their output. For commands that print nothing.
    ///
    /// # Errors
    ///
    /// `Rejected` with tmux's message if a command failed.
    pub(crate) fn into_result(self) -> Result<(), Error> {
        self.text().map(drop)
    }
}
