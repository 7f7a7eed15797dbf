//! Commands that tmux runs only if a condition on a pane is true.
//!
//! The condition and the commands travel as one `if-shell -F`, so nothing can change between the
//! check and the commands. The usual condition is the epoch of the server and the tag of the pane.
//! For a pane that does not exist tmux reads an empty tag, so the condition is false then too.

use crate::command_list::CommandList;
use crate::condition::{if_else, print_command};
use crate::reply::CommandReply;
use crate::{Error, PaneId, nonce};

/// Commands with a condition on a pane. Callers use it directly to send several lists in one round
/// trip.
pub(crate) struct GuardedCommand {
    pub(crate) command_list: CommandList,
    pane: PaneId,
    /// Printed by tmux if the condition is false, and by nothing else.
    refusal_nonce: String,
}

impl GuardedCommand {
    /// Puts `condition` on `pane` before `commands`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a word contains NUL.
    pub(crate) fn new(
        pane: PaneId,
        condition: &str,
        commands: &CommandList,
    ) -> Result<GuardedCommand, Error> {
        let refusal_nonce = nonce::generate();
        let command_list = if_else(&pane.to_string(), condition, commands, &print_command(&refusal_nonce))?;
        Ok(GuardedCommand { command_list, pane, refusal_nonce })
    }

    /// Returns what the commands printed. `action` is what the call does.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the condition was false; `Rejected`.
    pub(crate) fn output(&self, reply: CommandReply, action: &'static str) -> Result<String, Error> {
        let text = reply.text()?;
        if text == self.refusal_nonce { Err(Error::NotOwned { action, pane: self.pane }) } else { Ok(text) }
    }
}
