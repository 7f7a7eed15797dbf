//! Commands that tmux runs only if a condition on a pane is true.
//!
//! The condition and the commands are sent as one `if-shell -F`, so nothing can change between the
//! check of the condition and the commands. The usual condition is that the server is still the
//! same run of tmux (its epoch), and that the pane has the tag of the expected agent. A pane that
//! does not exist has an empty tag, so the condition is false.

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::if_shell::{if_else, print_command};
use crate::{Error, PaneId, nonce};

/// Commands that tmux runs only if a condition on a pane is true. Most callers use
/// `TmuxCall::run_if_tagged`. A caller that sends several command lists in one round trip makes a
/// `GuardedCommand` itself.
pub(crate) struct GuardedCommand {
    pub(crate) command_list: CommandList,
    pane: PaneId,
    /// Printed by tmux if the condition is false, and by nothing else.
    refusal_nonce: String,
}

impl GuardedCommand {
    /// Makes a command list that runs `commands` only if `condition` is true for `pane`.
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

    /// Returns what the commands printed. `reply` is tmux's reply to the command list. `action`
    /// describes the call in error messages, such as `kill a pane`.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the condition was false; `Rejected` if tmux refused a command.
    pub(crate) fn output(&self, reply: CommandReply, action: &'static str) -> Result<String, Error> {
        let text = reply.text()?;
        if text == self.refusal_nonce { Err(Error::NotOwned { action, pane: self.pane }) } else { Ok(text) }
    }
}
