//! Panes out of sight, and back among the others.

use super::Panes;
use super::room::roomy_window;
use crate::roster::SpawnId;
use protocol::control::Layout;
use protocol::name::TeamName;
use tmux::{Error, PaneId, PaneRow, PaneTag, WindowId};

impl Panes {
    pub(super) fn hide(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &PaneTag,
        layout: Layout,
    ) -> Result<(), Error> {
        let server = self.server()?;
        let row = server.list_panes()?.into_iter().find(|row| row.pane == pane);
        server.hide(pane, owner, team.as_str())?;
        self.untidy.extend(row.map(|row| (row.window, layout)));
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
        let rows = self.server()?.list_panes()?;
        let row = rows.iter().find(|row| row.pane == pane).ok_or(Error::PaneNotFound { pane })?;
        if !row.is_hidden {
            return Ok(());
        }
        // One that had a window to itself gets it again.
        let window = match roomy_window(&rows, beside, layout).filter(|_| beside.contains(owner)) {
            Some(window) => match self.server()?.show_in_window(pane, owner, window) {
                Err(Error::NoSpace { .. }) => self.own_window(team, pane, owner)?,
                result => result.map(|()| window)?,
            },
            None => self.own_window(team, pane, owner)?,
        };
        self.untidy.insert(window, layout);
        Ok(())
    }

    fn own_window(&mut self, team: &TeamName, pane: PaneId, owner: &PaneTag) -> Result<WindowId, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.show_in_session(pane, owner, session, team.as_str()) {
                // As in `Panes::window`.
                Err(Error::Rejected { .. }) => self.session = None,
                result => return result,
            }
        }
        let name = self.own_session()?;
        let server = self.server()?;
        let window = server.show_in_named_session(pane, owner, &name, team.as_str())?;
        self.session = Some(server.pane_session(pane)?);
        Ok(window)
    }
}

/// Those of these that are in no session of hidden panes.
pub(super) fn in_sight(rows: &[PaneRow], panes: Vec<(SpawnId, PaneId, PaneTag)>) -> Vec<SpawnId> {
    let is_seen = |pane: &PaneId, owner: &PaneTag| {
        let row = rows.iter().find(|row| row.pane == *pane);
        row.is_some_and(|row| !row.is_hidden && row.tag.as_deref() == Some(owner.as_str()))
    };
    panes.into_iter().filter(|(_, pane, owner)| is_seen(pane, owner)).map(|(spawn, ..)| spawn).collect()
}
