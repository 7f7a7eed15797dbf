//! Panes out of sight, and back among the others.

use crate::io::panes::manager::PaneManager;
use crate::io::panes::window_space::window_with_space;
use protocol::control::Layout;
use protocol::name::TeamName;
use tmux::{Error, PaneId, PaneTag, WindowId};

impl PaneManager {
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

    /// Back among the others; one that is in sight stays where it is.
    pub(super) fn show(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
        beside: &[PaneTag],
        layout: Layout,
    ) -> Result<(), Error> {
        let rows = self.connect()?.list_panes()?;
        let row = rows.iter().find(|row| row.pane == pane).ok_or(Error::PaneNotFound { pane })?;
        if !row.is_hidden {
            return Ok(());
        }
        // One that had a window to itself gets it again.
        let window = match window_with_space(&rows, beside, layout).filter(|_| beside.contains(owner)) {
            Some(window) => match self.connect()?.show_in_window(pane, owner, window) {
                Err(Error::NoSpace { .. }) => self.move_to_own_window(team, pane, owner)?,
                result => result.map(|()| window)?,
            },
            None => self.move_to_own_window(team, pane, owner)?,
        };
        self.pending_layouts.insert(window, layout);
        Ok(())
    }

    fn move_to_own_window(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
    ) -> Result<WindowId, Error> {
        if let Some(session) = self.daemon_tmux_session()? {
            match self.connect()?.show_in_session(pane, owner, session, team.as_str()) {
                // As in `Panes::window`.
                Err(Error::Rejected { .. }) => self.tmux_session = None,
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
