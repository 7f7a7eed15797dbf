//! A pane for a new agent, in a window of its team.

use super::Panes;
use super::room::roomy_window;
use crate::roster::SpawnId;
use crate::step::Opened;
use protocol::control::Layout;
use protocol::name::TeamName;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tmux::{Created, Error, Label, Owner, PaneId, SessionId, WindowId};

impl Panes {
    pub(super) fn open(
        &mut self,
        spawn: &SpawnId,
        team: &TeamName,
        beside: &[Owner],
        layout: Layout,
        argv: &[String],
        label: &Label,
    ) -> Result<Opened, Error> {
        let created = match self.room(team, beside, layout)? {
            Some(window) => match self.server()?.split(window, argv) {
                Err(Error::NoSpace { .. }) => self.window(team, argv)?,
                result => result?,
            },
            None => self.window(team, argv)?,
        };
        self.latest.insert(team.clone(), created.window);
        self.untidy.insert(created.window, layout);
        let owner = spawn.owner();
        let server = self.server()?;
        server.claim(created.pane, &owner, label)?;
        let epoch = server.epoch().clone();
        Ok(Opened { pane: created.pane, window: created.window, epoch, pid: created.pid })
    }

    /// A window of the team with room for one more. The one that had the last pane is asked first, alone: of a team of
    /// hundreds most have none.
    fn room(&mut self, team: &TeamName, beside: &[Owner], layout: Layout) -> Result<Option<WindowId>, Error> {
        if let Some(latest) = self.latest.get(team).copied()
            && let Ok(rows) = self.server()?.list_window(latest)
            && let Some(window) = roomy_window(&rows, beside, layout)
        {
            return Ok(Some(window));
        }
        Ok(roomy_window(&self.rows()?, beside, layout))
    }

    /// Without it the agent runs all the same; what `logs` lacks then, the log tells.
    pub(super) fn record(&mut self, spawn: &SpawnId, pane: PaneId, command: &[PathBuf], log: &Path) {
        if let Some(directory) = log.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
        }
        let recorded = self.server().and_then(|server| server.record(pane, &spawn.owner(), command));
        recorded.unwrap_or_else(|error| tracing::warn!("cannot record {pane}: {error}"));
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
