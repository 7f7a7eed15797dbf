//! Marks on a pane: whose it is, and what its border says.
//!
//! They are pane options, so they stay with the pane when the user moves it to another window or session. Who starts it
//! anew with a command of their own gets it without them.
//!
//! A claimed pane stays when its process ends, until it is killed by its owner. Up to tmux 3.6, two panes of a window
//! that go in the same moment crash a server that has a control client, the active one's end being told when the
//! window has no pane left; kills that come one by one do not.

use tmux_interface::{SetOption, TmuxCommand};

use crate::deadline::Deadline;
use crate::guard::{any, both, only_if};
use crate::label::option;
use crate::script::Script;
use crate::{Error, Label, Owner, PaneId, Server};

impl Server {
    /// Makes a pane `owner`'s and labels it, in one go. From now on it stays when its process ends.
    ///
    /// # Errors
    /// `NotOurs` if it is somebody else's already; `Failed` where the pane is gone.
    pub fn claim(&mut self, pane: PaneId, owner: &Owner, label: &Label) -> Result<(), Error> {
        let deadline = Deadline::of("claim a pane");
        let unclaimed = format!("#{{==:#{{{}}},}}", Owner::OPTION);
        let free = any(&unclaimed, &owner.condition());
        let act = Script::of(&option(pane, Owner::OPTION, owner.to_string()))
            .then(&its_process(pane))
            .then(&option(pane, "remain-on-exit", "on".to_owned()))
            .and(label.script(pane));
        let condition = both(&self.epoch().condition(), &free);
        self.conditional(deadline, pane, &condition, &act).map(drop)
    }

    /// Puts another label on a pane of `owner`'s.
    ///
    /// # Errors
    /// `NotOurs`.
    pub fn label(&mut self, pane: PaneId, owner: &Owner, label: &Label) -> Result<(), Error> {
        self.guarded(Deadline::of("label a pane"), pane, owner, &label.script(pane)).map(drop)
    }

    /// Takes our marks off a pane of `owner`'s that somebody has started anew: it ends with its process again, and its
    /// border says nothing of us. On any other pane nothing is done.
    pub(crate) fn let_go(&mut self, pane: PaneId, owner: &Owner, deadline: Deadline) -> Result<(), Error> {
        let theirs = both(&owner.mark(), &format!("#{{!=:{},1}}", owner.condition()));
        let condition = both(&self.epoch().condition(), &theirs);
        let marks =
            [Owner::PROCESS, "remain-on-exit", "@teamd_name", "@teamd_color", "@teamd_state", "@teamd_task"];
        let first = Script::of(&without(pane, Owner::OPTION));
        let script = marks.into_iter().fold(first, |script, mark| script.then(&without(pane, mark)));
        let script = only_if(&pane.to_string(), &condition, &script)?;
        self.ask(&script, deadline)?.done(deadline.verb())
    }
}

/// Writes down the process that is in the pane; a format that tmux fills in itself.
fn its_process(pane: PaneId) -> TmuxCommand<'static> {
    let command = SetOption::new().pane().format().target_pane(pane.to_string());
    command.option(Owner::PROCESS).value("#{pane_pid}").build()
}

fn without(pane: PaneId, mark: &'static str) -> TmuxCommand<'static> {
    SetOption::new().pane().unset().target_pane(pane.to_string()).option(mark).build()
}
