//! The one place where a pane is killed.
//!
//! Killing is one guarded step inside the server, and "gone" is what a list says that came back, never a failure.
//! A pane's end is a hang-up for its processes and no more; who must be sure of those has to see to them before.

use tmux_interface::{KillPane, TmuxCommand};

use crate::deadline::Deadline;
use crate::hide::keeping_zoom;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server};

/// How an attempt to kill a pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It was there and ours, and is gone.
    Killed,
    /// It is not that owner's, or somebody has started it anew with a process of theirs; it lives.
    NotOurs,
    /// There is no such pane.
    Absent,
}

impl Server {
    /// Kills a pane if it is `owner`'s. A zoom of another pane in that window stays. One that somebody has started anew
    /// loses our marks.
    ///
    /// # Errors
    /// `Failed` if it is there all the same; `Timeout` and the like leave it unknown.
    pub fn kill(&mut self, pane: PaneId, owner: &Owner) -> Result<Killed, Error> {
        let deadline = Deadline::of("kill a pane");
        let Some(row) = self.row(pane, deadline)? else { return Ok(Killed::Absent) };
        let kill = KillPane::new().target_pane(pane.to_string()).build();
        let act = keeping_zoom(&row, &Script::of(&kill))?;
        match self.guarded(deadline, pane, owner, &act) {
            Ok(_) => self.verify(pane, Killed::Killed, deadline),
            Err(Error::NotOurs { .. }) => {
                self.let_go(pane, owner, deadline)?;
                self.verify(pane, Killed::Absent, deadline)
            }
            Err(other) => Err(other),
        }
    }

    /// What became of it: `gone` if no list has it any more.
    fn verify(&mut self, pane: PaneId, gone: Killed, deadline: Deadline) -> Result<Killed, Error> {
        match (self.row(pane, deadline)?, gone) {
            (None, gone) => Ok(gone),
            (Some(_), Killed::Killed) => {
                Err(Error::Failed { verb: deadline.verb(), cause: format!("pane {pane} is still there") })
            }
            (Some(_), _) => Ok(Killed::NotOurs),
        }
    }
}

/// Ends the pane that a session of ours began with, in the script that made the session.
pub(crate) fn first_of(session: &str) -> TmuxCommand<'static> {
    KillPane::new().target_pane(format!("={session}:^")).build()
}
