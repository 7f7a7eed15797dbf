//! Acts that tmux itself does only if the pane is still the one that we mean.
//!
//! The question and the act travel as one `if-shell -F`, so nothing can happen between them. It asks for the server's
//! epoch and the pane's owner. A pane that is not there has an empty owner in tmux's eyes, and so is refused as well.

use tmux_interface::{DisplayMessage, IfShell};

use crate::deadline::Deadline;
use crate::reply::Reply;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server, nonce};

impl Server {
    /// Does `act` if the pane is `owner`'s, and gives what it printed.
    ///
    /// # Errors
    /// `NotOurs` if nothing was done; and what [`Server::ask`] has.
    pub(crate) fn guarded(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        owner: &Owner,
        act: &Script,
    ) -> Result<String, Error> {
        let condition = self.ours(owner);
        self.conditional(deadline, pane, &condition, act)
    }

    /// Holds on `owner`'s pane alone, on this very server.
    pub(crate) fn ours(&self, owner: &Owner) -> String {
        both(&self.epoch().condition(), &owner.condition())
    }

    /// Does `act` if `condition` holds on the pane, and gives what it printed.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn conditional(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        act: &Script,
    ) -> Result<String, Error> {
        let guarded = Guarded::new(pane, condition, act)?;
        let reply = self.ask(&guarded.script, deadline)?;
        guarded.done(reply, deadline)
    }

    /// The same for what must not be done twice.
    ///
    /// # Errors
    /// As above; after `Timeout` and `Lost` it may have been done.
    pub(crate) fn conditional_once(
        &mut self,
        deadline: Deadline,
        pane: PaneId,
        condition: &str,
        act: &Script,
    ) -> Result<String, Error> {
        let guarded = Guarded::new(pane, condition, act)?;
        let reply = self.ask_once(&guarded.script, deadline)?;
        guarded.done(reply, deadline)
    }
}

/// An act that a condition on a pane stands before, for whoever asks for several in one round trip.
pub(crate) struct Guarded {
    pub(crate) script: Script,
    pane: PaneId,
    /// What is said where the condition does not hold, and by nobody else.
    refusal: String,
}

impl Guarded {
    pub(crate) fn new(pane: PaneId, condition: &str, act: &Script) -> Result<Guarded, Error> {
        let refusal = nonce::fresh();
        let script = either(&pane.to_string(), condition, act, &say(&refusal))?;
        Ok(Guarded { script, pane, refusal })
    }

    /// What it printed.
    ///
    /// # Errors
    /// `NotOurs` if nothing was done; `Failed`.
    pub(crate) fn done(&self, reply: Reply, deadline: Deadline) -> Result<String, Error> {
        let text = reply.text(deadline.verb())?;
        if text == self.refusal {
            Err(Error::NotOurs { verb: deadline.verb(), pane: self.pane })
        } else {
            Ok(text)
        }
    }
}

/// Prints a constant word or a constant format.
pub(crate) fn say(text: &str) -> Script {
    Script::of(&DisplayMessage::new().print().message(text).build())
}

/// One script where the condition holds on the target, the other where it does not.
pub(crate) fn either(target: &str, condition: &str, yes: &Script, no: &Script) -> Result<Script, Error> {
    let mut command = IfShell::new().not_execute().target_pane(target).shell_command(condition).build();
    command.push_param(yes.line()?).push_param(no.line()?);
    Ok(Script::of(&command))
}

/// One script where the condition holds on the target, else nothing.
pub(crate) fn only_if(target: &str, condition: &str, yes: &Script) -> Result<Script, Error> {
    let command = IfShell::new().not_execute().target_pane(target).shell_command(condition);
    Ok(Script::of(&command.command(yes.line()?).build()))
}

pub(crate) fn both(one: &str, other: &str) -> String {
    format!("#{{&&:{one},{other}}}")
}

pub(crate) fn any(one: &str, other: &str) -> String {
    format!("#{{||:{one},{other}}}")
}
