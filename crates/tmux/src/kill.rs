//! The one place where a pane is killed.
//!
//! Killing is one guarded step inside the server, and "gone" is what a list says that came back, never a failure.
//! A pane's end is a hang-up for its processes and no more; who must be sure of those has to see to them before.

use tmux_interface::{KillPane, ResizePane};

use crate::deadline::Deadline;
use crate::guard::{both, either};
use crate::script::Script;
use crate::{Error, Owner, PaneId, PaneRow, Server};

/// How an attempt to kill a pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It was there and ours, and is gone.
    Killed,
    /// It is not that owner's; it lives.
    NotOurs,
    /// There is no such pane.
    Absent,
}

impl Server {
    /// Kills a pane if it is `owner`'s. A zoom of another pane in that window stays.
    ///
    /// # Errors
    /// `Failed` if it is there all the same; `Timeout` and the like leave it unknown.
    pub fn kill(&mut self, pane: PaneId, owner: &Owner) -> Result<Killed, Error> {
        let deadline = Deadline::of("kill a pane");
        let Some(row) = self.row(pane, deadline)? else { return Ok(Killed::Absent) };
        let act = keeping_zoom(&row)?;
        match self.guarded(deadline, pane, owner, &act) {
            Ok(_) => self.verify(pane, Killed::Killed, deadline),
            Err(Error::NotOurs { .. }) => self.verify(pane, Killed::Absent, deadline),
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

/// tmux ends a window's zoom with any of its panes. The zoomed one is the active one, so it is zoomed again, unless
/// it is the one to go, or the pane has moved to another window since it was listed.
fn keeping_zoom(row: &PaneRow) -> Result<Script, Error> {
    let (pane, window) = (row.pane.to_string(), row.window.to_string());
    let kill = Script::of(&KillPane::new().target_pane(pane.as_str()).build());
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    let behind = both("#{window_zoomed_flag}", "#{!=:#{pane_active},1}");
    let behind = both(&behind, &format!("#{{==:#{{window_id}},{window}}}"));
    either(&pane, &behind, &kill.clone().then(&zoom), &kill)
}
