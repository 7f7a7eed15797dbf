//! Hides panes and shows them again.

use crate::core::jobs::pane_jobs::PaneMove;
use crate::io::panes::run_pane_jobs::PaneManager;
use crate::io::panes::window_space::window_with_space;
use tmux::{Error, PaneId, PanePlace, PaneRow, PaneTag, WindowId};

/// Whether a pane was moved into a window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveOutcome {
    Moved,
    /// The window has no space, or tmux has refused the move.
    NotMoved,
}

impl PaneManager {
    /// Moves a pane to the tmux session of hidden panes.
    pub(super) fn hide(&mut self, pane_move: &PaneMove) -> Result<(), Error> {
        let server = self.connect()?;
        let row = server.list_panes()?.into_iter().find(|row| row.pane == pane_move.pane);
        server.hide(pane_move.pane, &pane_move.owner, pane_move.team.as_str())?;
        self.pending_layouts.extend(row.map(|row| (row.window, pane_move.layout)));
        Ok(())
    }

    /// Moves a hidden pane back to a window of its team, at its place in the order in which the
    /// members joined the team. A visible pane stays where it is.
    pub(super) fn show(&mut self, pane_move: &PaneMove) -> Result<(), Error> {
        let rows = self.connect()?.list_panes()?;
        let row = rows.iter().find(|row| row.pane == pane_move.pane);
        if !row.ok_or(Error::PaneNotFound { pane: pane_move.pane })?.is_hidden
            || self.show_beside_person(&rows, pane_move)? == MoveOutcome::Moved
            || self.show_in_team_window(&rows, pane_move)? == MoveOutcome::Moved
        {
            return Ok(());
        }
        let window = self.move_to_own_window(pane_move)?;
        self.pending_layouts.insert(window, pane_move.layout);
        Ok(())
    }

    fn show_in_team_window(&mut self, rows: &[PaneRow], pane_move: &PaneMove) -> Result<MoveOutcome, Error> {
        // `neighbors` has the tags of the panes that share windows. If the tag of this pane is not
        // among them, the pane was opened in a window of its own, and stays alone.
        if !pane_move.neighbors.contains(&pane_move.owner) {
            return Ok(MoveOutcome::NotMoved);
        }
        let window = window_with_space(rows, &pane_move.neighbors, pane_move.layout);
        let Some(window) = window else { return Ok(MoveOutcome::NotMoved) };
        let Some(place) = place_in_joining_order(rows, window, pane_move) else {
            return Ok(MoveOutcome::NotMoved);
        };
        match self.connect()?.show_in_window(pane_move.pane, &pane_move.owner, window, place) {
            // A pane that has just been closed or moved away cannot be split.
            Err(error @ (Error::NoSpace { .. } | Error::Rejected { .. })) => {
                tracing::debug!("cannot show {} in {window}: {error}", pane_move.pane);
                Ok(MoveOutcome::NotMoved)
            }
            result => result.map(|()| {
                self.pending_layouts.insert(window, pane_move.layout);
                MoveOutcome::Moved
            }),
        }
    }

    /// Moves a hidden pane to a new window in the daemon's tmux session. Returns the window.
    fn move_to_own_window(&mut self, pane_move: &PaneMove) -> Result<WindowId, Error> {
        let PaneMove { team, pane, owner, .. } = pane_move;
        if let Some(session) = self.daemon_tmux_session()? {
            match self.connect()?.show_in_session(*pane, owner, session, team.as_str()) {
                Err(error @ Error::Rejected { .. }) => self.forget_ended_session(session, error)?,
                result => return result,
            }
        }
        let name = self.own_tmux_session_name()?;
        let server = self.connect()?;
        let window = server.show_in_named_session(*pane, owner, &name, team.as_str())?;
        self.tmux_session = Some(server.pane_session(*pane)?);
        Ok(window)
    }
}

/// Returns where the pane of `pane_move` is inserted into a window of its team. The panes are in
/// the order in which their members joined the team. So the place is below the last pane of a
/// member that joined earlier, or else above the first pane of a member that joined later. `None`
/// if the window has no pane of the team.
pub(super) fn place_in_joining_order(
    rows: &[PaneRow],
    window: WindowId,
    pane_move: &PaneMove,
) -> Option<PanePlace> {
    let in_window = |tag: &PaneTag| -> Option<PaneId> {
        let is_tagged = |row: &&PaneRow| row.window == window && row.tag.as_deref() == Some(tag.as_str());
        rows.iter().find(is_tagged).map(|row| row.pane)
    };
    let position = pane_move.neighbors.iter().position(|tag| *tag == pane_move.owner).unwrap_or(0);
    let (before, after) = pane_move.neighbors.split_at(position);
    let below = before.iter().rev().find_map(in_window).map(PanePlace::Below);
    below.or_else(|| after.iter().find_map(in_window).map(PanePlace::Above))
}
