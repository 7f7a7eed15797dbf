//! Marks on a pane: whose it is, and what its border says.
//!
//! They are pane options, so they stay with the pane when the user moves it to another window or session.
//!
//! A claimed pane stays when its process ends, until it is killed by its owner. Up to tmux 3.6, two panes of a window
//! that go in the same moment crash a server that has a control client, the active one's end being told when the
//! window has no pane left; kills that come one by one do not.

use crate::deadline::Deadline;
use crate::guard::{any, both};
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
}
