//! Panes out of sight, and back among the others.

use super::Panes;
use super::room::roomy_window;
use crate::roster::SpawnId;
use protocol::control::Layout;
use protocol::name::TeamName;
use tmux::{Error, Owner, PaneId, PaneRow, WindowId};

impl Panes {
    pub(super) fn hide(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &Owner,
        layout: Layout,
    ) -> Result<(), Error> {
        let server = self.server()?;
        let row = server.list()?.into_iter().find(|row| row.pane == pane);
        server.hide(pane, owner, team.as_str())?;
        self.untidy.extend(row.map(|row| (row.window, layout)));
        Ok(())
    }

    /// Back among the others; one that is in sight stays where it is.
    pub(super) fn show(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &Owner,
        beside: &[Owner],
        layout: Layout,
    ) -> Result<(), Error> {
        let rows = self.server()?.list()?;
        let row = rows.iter().find(|row| row.pane == pane).ok_or(Error::NoPane { pane })?;
        if !row.hidden {
            return Ok(());
        }
        // One that had a window to itself gets it again.
        let window = match roomy_window(&rows, beside, layout).filter(|_| beside.contains(owner)) {
            Some(window) => match self.server()?.put_beside(pane, owner, window) {
                Err(Error::NoSpace { .. }) => self.own_window(team, pane, owner)?,
                result => result.map(|()| window)?,
            },
            None => self.own_window(team, pane, owner)?,
        };
        self.untidy.insert(window, layout);
        Ok(())
    }

    fn own_window(&mut self, team: &TeamName, pane: PaneId, owner: &Owner) -> Result<WindowId, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.put_into(pane, owner, session, team.as_str()) {
                // As in `Panes::window`.
                Err(Error::Failed { .. }) => self.session = None,
                result => return result,
            }
        }
        let name = self.own_session()?;
        let server = self.server()?;
        let window = server.put_into_named(pane, owner, &name, team.as_str())?;
        self.session = Some(server.session_of(pane)?);
        Ok(window)
    }
}

/// Those of these that are in no session of hidden panes.
pub(super) fn in_sight(rows: &[PaneRow], panes: Vec<(SpawnId, PaneId, Owner)>) -> Vec<SpawnId> {
    let is_seen = |pane: &PaneId, owner: &Owner| {
        let row = rows.iter().find(|row| row.pane == *pane);
        row.is_some_and(|row| !row.hidden && row.owner.as_deref() == Some(owner.as_str()))
    };
    panes.into_iter().filter(|(_, pane, owner)| is_seen(pane, owner)).map(|(spawn, ..)| spawn).collect()
}
