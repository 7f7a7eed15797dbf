//! A pane for a new agent, in a window of its team.

use super::room::roomy_window;
use super::{Opening, Panes};
use crate::step::Opened;
use protocol::control::Layout;
use protocol::name::TeamName;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tmux::{Created, Error, Owner, PaneRow, SessionId, WindowId};

impl Panes {
    pub(super) fn open(&mut self, opening: &Opening) -> Result<Opened, Error> {
        let Opening { team, argv, layout, .. } = opening;
        make_room_for(&opening.log);
        let created = match self.room(team, &opening.beside, *layout)? {
            Some(window) => match self.server()?.split(window, argv) {
                Err(Error::NoSpace { .. }) => self.window(team, argv)?,
                result => result?,
            },
            None => self.window(team, argv)?,
        };
        self.latest.insert(team.clone(), created.window);
        self.untidy.insert(created.window, *layout);
        let owner = opening.spawn.owner();
        let server = self.server()?;
        let claimed = server.claim_and_record(&created, &owner, &opening.label, &opening.record)?;
        let epoch = server.epoch().clone();
        self.beside = claimed.beside.ok().map(|rows| (created.window, rows));
        // Without it the agent runs all the same; what `logs` lacks then, the log tells.
        claimed.recorded.unwrap_or_else(|error| tracing::warn!("cannot record {}: {error}", created.pane));
        Ok(Opened { pane: created.pane, window: created.window, epoch, pid: created.pid })
    }

    /// A window of the team with room for one more. The one that had the last pane is asked first, alone: of a team of
    /// hundreds most have none.
    fn room(&mut self, team: &TeamName, beside: &[Owner], layout: Layout) -> Result<Option<WindowId>, Error> {
        if let Some(latest) = self.latest.get(team).copied()
            && let Some(rows) = self.panes_of(latest)?
            && let Some(window) = roomy_window(&rows, beside, layout)
        {
            return Ok(Some(window));
        }
        Ok(roomy_window(&self.rows()?, beside, layout))
    }

    /// As they were a moment ago, or as they are; none where there is no such window.
    fn panes_of(&mut self, window: WindowId) -> Result<Option<Vec<PaneRow>>, Error> {
        match self.beside.take().filter(|(of, _)| *of == window) {
            Some((_, rows)) => Ok(Some(rows)),
            None => Ok(self.server()?.list_window(window).ok()),
        }
    }

    fn window(&mut self, team: &TeamName, argv: &[String]) -> Result<Created, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.new_window(session, team.as_str(), argv) {
                // The session may have ended since we saw it.
                Err(Error::Failed { .. }) => self.session = None,
                result => return result,
            }
        }
        let name = self.own_session()?;
        let created = self.server()?.new_session(&name, team.as_str(), argv)?;
        self.session = Some(created.session);
        Ok(created)
    }

    /// The session of teamd's own pane, or the one made for the first window.
    pub(super) fn session(&mut self) -> Result<Option<SessionId>, Error> {
        if let (None, Some(pane)) = (self.session, self.home.pane) {
            self.session = self.server()?.session_of(pane).ok();
        }
        Ok(self.session)
    }

    /// For windows where teamd has no pane of its own. On the next server it has another name: whoever brings back the
    /// sessions of a server that was killed has one of this name, and not ours.
    pub(super) fn own_session(&mut self) -> Result<String, Error> {
        Ok(format!("teamd-{}-{}", std::process::id(), self.server()?.epoch().pid))
    }
}

/// Where it can't be had, the recorder can't write either, and says so.
fn make_room_for(log: &Path) {
    if let Some(directory) = log.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
    }
}
