//! Commands that tmux runs only if a condition on a pane is true.
//!
//! The condition and the commands travel as one `if-shell -F`, so nothing can change between the
//! check and the commands. The usual condition is the epoch of the server and the tag of the pane.
//! For a pane that does not exist tmux reads an empty tag, so the condition is false then too.

use crate::command_list::CommandList;
use crate::condition::{all_of, if_else, print_command};
use crate::deadline::Deadline;
use crate::reply::CommandReply;
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

impl TmuxServer {
    /// Runs `commands` if the pane has the tag `tag`, and returns what it printed. It may run
    /// twice.
    ///
    /// # Errors
    ///
    /// `NotOwned` if nothing was done; `Rejected`; and the errors of [`TmuxServer::run`].
    pub(crate) fn run_if_tagged(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        tag: &PaneTag,
        commands: &CommandList,
    ) -> Result<String, Error> {
        let condition = self.tag_condition(tag);
        self.run_if(deadline, pane, &condition, commands)
    }

    /// Returns a condition that is true only on this server, and on a pane with the tag `tag` that
    /// no user has respawned.
    pub(crate) fn tag_condition(&self, tag: &PaneTag) -> String {
        all_of(&self.epoch().condition(), &tag.owned_condition())
    }

    /// Runs `commands` if `condition` is true for the pane, and returns what it printed. It may run
    /// twice.
    ///
    /// # Errors
    ///
    /// As [`TmuxServer::run_if_tagged`].
    pub(crate) fn run_if(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        commands: &CommandList,
    ) -> Result<String, Error> {
        let guarded = GuardedCommand::new(pane, condition, commands)?;
        let reply = self.run(&guarded.command_list, deadline)?;
        guarded.output(reply, deadline)
    }

    /// As [`TmuxServer::run_if`], for commands that must not run twice.
    ///
    /// # Errors
    ///
    /// As [`TmuxServer::run_if_tagged`]. After `Timeout` and `Disconnected` it may have run.
    pub(crate) fn run_if_once(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        commands: &CommandList,
    ) -> Result<String, Error> {
        let guarded = GuardedCommand::new(pane, condition, commands)?;
        let reply = self.run_once(&guarded.command_list, deadline)?;
        guarded.output(reply, deadline)
    }
}

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

    /// Returns what the commands printed.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the condition was false; `Rejected`.
    pub(crate) fn output(&self, reply: CommandReply, deadline: Deadline) -> Result<String, Error> {
        let text = reply.text(deadline.action())?;
        if text == self.refusal_nonce {
            Err(Error::NotOwned { action: deadline.action(), pane: self.pane })
        } else {
            Ok(text)
        }
    }
}
