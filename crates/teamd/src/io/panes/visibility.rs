//! Hides panes and shows them again.

use crate::io::panes::thread::PaneManager;
use crate::io::panes::window_space::window_with_space;
use protocol::control::Layout;
use protocol::name::TeamName;
use tmux::{Error, PaneId, PaneTag, WindowId};

impl PaneManager {
    /// Moves a pane to the tmux session of hidden panes.
    pub(super) fn hide(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
        layout: Layout,
    ) -> Result<(), Error> {
        let server = self.connect()?;
        let row = server.list_panes()?.into_iter().find(|row| row.pane == pane);
        server.hide(pane, owner, team.as_str())?;
        self.pending_layouts.extend(row.map(|row| (row.window, layout)));
        Ok(())
    }

    /// Moves a hidden pane back to a window of its team. A visible pane stays where it is.
    ///
    /// `neighbors` has the pane tags of the agents whose panes share windows. If `owner` is not
    /// among them, the pane gets a window of its own.
    pub(super) fn show(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
        neighbors: &[PaneTag],
        layout: Layout,
    ) -> Result<(), Error> {
        let rows = self.connect()?.list_panes()?;
        let row = rows.iter().find(|row| row.pane == pane).ok_or(Error::PaneNotFound { pane })?;
        if !row.is_hidden {
            return Ok(());
        }
        // An agent whose pane has a window of its own is not in `neighbors`. Its pane must not
        // share a window, so it gets a new window again.
        let window = match window_with_space(&rows, neighbors, layout).filter(|_| neighbors.contains(owner)) {
            Some(window) => match self.connect()?.show_in_window(pane, owner, window) {
                Err(Error::NoSpace { .. }) => self.move_to_own_window(team, pane, owner)?,
                result => result.map(|()| window)?,
            },
            None => self.move_to_own_window(team, pane, owner)?,
        };
        self.pending_layouts.insert(window, layout);
        Ok(())
    }

    /// Moves a hidden pane to a new window in the daemon's tmux session. Returns the window.
    fn move_to_own_window(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
    ) -> Result<WindowId, Error> {
        if let Some(session) = self.daemon_tmux_session()? {
            match self.connect()?.show_in_session(pane, owner, session, team.as_str()) {
                Err(error @ Error::Rejected { .. }) => self.forget_ended_session(session, error)?,
                result => return result,
            }
        }
        let name = self.own_tmux_session_name()?;
        let server = self.connect()?;
        let window = server.show_in_named_session(pane, owner, &name, team.as_str())?;
        self.tmux_session = Some(server.pane_session(pane)?);
        Ok(window)
    }
}
