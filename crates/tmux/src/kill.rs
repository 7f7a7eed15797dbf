//! The one place where a pane is killed.
//!
//! Killing is one guarded step inside the server, and "gone" is what a list says that came back, never a failure. Both are
//! asked for in one round trip; the next pane's comes after it, see [`crate::mark`].
//! A pane's end is a hang-up for its processes and no more; who must be sure of those has to see to them before.

use tmux_interface::{KillPane, TmuxCommand};

use crate::deadline::Deadline;
use crate::guard::{Guarded, either, say};
use crate::hide::{behind_a_zoom, keeping_zoom};
use crate::list::{of_pane, row};
use crate::script::Script;
use crate::{Error, Owner, PaneId, PaneRow, Server, nonce};

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
        let kill = Script::of(&KillPane::new().target_pane(pane.to_string()).build());
        // Whose zoom it is must be known before it ends.
        let waits = nonce::fresh();
        let unless_zoomed = either(&pane.to_string(), &behind_a_zoom(), &say(&waits), &kill)?;
        let (did, there) = match self.act_and_look(pane, owner, &unless_zoomed, deadline)? {
            (Ok(said), Some(row)) if said == waits => {
                self.act_and_look(pane, owner, &keeping_zoom(&row, &kill)?, deadline)?
            }
            tried => tried,
        };
        match (did, there) {
            (Ok(_), None) => Ok(Killed::Killed),
            (Ok(_), Some(_)) => {
                Err(Error::Failed { verb: deadline.verb(), cause: format!("pane {pane} is still there") })
            }
            (Err(Error::NotOurs { .. }), None) => Ok(Killed::Absent),
            (Err(Error::NotOurs { .. }), Some(_)) => {
                self.let_go(pane, owner, deadline)?;
                Ok(self.row(pane, deadline)?.map_or(Killed::Absent, |_| Killed::NotOurs))
            }
            (Err(other), _) => Err(other),
        }
    }

    /// What came of an act on `owner`'s pane, and the pane behind it.
    fn act_and_look(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        act: &Script,
        deadline: Deadline,
    ) -> Result<(Result<String, Error>, Option<PaneRow>), Error> {
        let guarded = Guarded::new(pane, &self.ours(owner), act)?;
        let [did, look] = self.ask_all(&[guarded.script.clone(), of_pane(pane)], deadline)?;
        Ok((guarded.done(did, deadline), row(look, pane, deadline)?))
    }
}

/// Ends the pane that a session of ours began with, in the script that made the session.
pub(crate) fn first_of(session: &str) -> TmuxCommand<'static> {
    KillPane::new().target_pane(format!("={session}:^")).build()
}
