//! Acts that tmux itself does only if the pane is still the one that we mean.
//!
//! The question and the act travel as one `if-shell -F`, so nothing can happen between them. It asks for the server's
//! epoch and the pane's owner. A pane that is not there has an empty owner in tmux's eyes, and so is refused as well.

use tmux_interface::{DisplayMessage, IfShell};

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::reply::CommandReply;
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

impl TmuxServer {
    /// Does `act` if the pane is `owner`'s, and gives what it printed.
    ///
    /// # Errors
    /// `NotOurs` if nothing was done; and what [`Server::ask`] has.
    pub(crate) fn run_if_tagged(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        owner: &PaneTag,
        act: &CommandList,
    ) -> Result<String, Error> {
        let condition = self.tag_condition(owner);
        self.run_if(deadline, pane, &condition, act)
    }

    /// Holds on `owner`'s pane alone, on this very server.
    pub(crate) fn tag_condition(&self, owner: &PaneTag) -> String {
        all_of(&self.epoch().condition(), &owner.owned_condition())
    }

    /// Does `act` if `condition` holds on the pane, and gives what it printed.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn run_if(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        act: &CommandList,
    ) -> Result<String, Error> {
        let guarded = GuardedCommand::new(pane, condition, act)?;
        let reply = self.run(&guarded.script, deadline)?;
        guarded.output(reply, deadline)
    }

    /// The same for what must not be done twice.
    ///
    /// # Errors
    /// As above; after `Timeout` and `Lost` it may have been done.
    pub(crate) fn run_if_once(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        act: &CommandList,
    ) -> Result<String, Error> {
        let guarded = GuardedCommand::new(pane, condition, act)?;
        let reply = self.run_once(&guarded.script, deadline)?;
        guarded.output(reply, deadline)
    }
}

/// An act that a condition on a pane stands before, for whoever asks for several in one round trip.
pub(crate) struct GuardedCommand {
    pub(crate) script: CommandList,
    pane: PaneId,
    /// What is said where the condition does not hold, and by nobody else.
    refusal_nonce: String,
}

impl GuardedCommand {
    pub(crate) fn new(pane: PaneId, condition: &str, act: &CommandList) -> Result<GuardedCommand, Error> {
        let refusal = nonce::generate();
        let script = if_else(&pane.to_string(), condition, act, &print_command(&refusal))?;
        Ok(GuardedCommand { script, pane, refusal_nonce: refusal })
    }

    /// What it printed.
    ///
    /// # Errors
    /// `NotOurs` if nothing was done; `Failed`.
    pub(crate) fn output(&self, reply: CommandReply, deadline: Deadline) -> Result<String, Error> {
        let text = reply.text(deadline.action())?;
        if text == self.refusal_nonce {
            Err(Error::NotOwned { action: deadline.action(), pane: self.pane })
        } else {
            Ok(text)
        }
    }
}

/// Prints a constant word or a constant format.
pub(crate) fn print_command(text: &str) -> CommandList {
    CommandList::new(&DisplayMessage::new().print().message(text).build())
}

/// One script where the condition holds on the target, the other where it does not.
pub(crate) fn if_else(
    target: &str,
    condition: &str,
    yes: &CommandList,
    no: &CommandList,
) -> Result<CommandList, Error> {
    let mut command = IfShell::new().not_execute().target_pane(target).shell_command(condition).build();
    command.push_param(yes.to_command_line()?).push_param(no.to_command_line()?);
    Ok(CommandList::new(&command))
}

/// One script where the condition holds on the target, else nothing.
pub(crate) fn if_then(target: &str, condition: &str, yes: &CommandList) -> Result<CommandList, Error> {
    let command = IfShell::new().not_execute().target_pane(target).shell_command(condition);
    Ok(CommandList::new(&command.command(yes.to_command_line()?).build()))
}

pub(crate) fn all_of(one: &str, other: &str) -> String {
    format!("#{{&&:{one},{other}}}")
}

pub(crate) fn any_of(one: &str, other: &str) -> String {
    format!("#{{||:{one},{other}}}")
}
