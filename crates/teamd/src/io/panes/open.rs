//! A pane for a new agent, in a window of its team.

use crate::core::jobs::panes::{OpenedPane, PaneSpec};
use crate::io::panes::manager::{PaneManager, is_server_gone};
use crate::io::panes::open_batch::OpenBatch;
use crate::io::panes::window_space::window_with_space;
use protocol::control::Layout;
use protocol::name::TeamName;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tmux::{CreatedPane, Error, PaneTag, SessionId, WindowId};

impl PaneManager {
    /// Of those that are opened at once the next one's pane is made with the claim of this one.
    pub(super) fn open(&mut self, opening: &PaneSpec, next: Option<&PaneSpec>) -> Result<OpenedPane, Error> {
        let PaneSpec { team, layout, .. } = opening;
        create_log_directory(&opening.log);
        // Of what was known something is not so: the next one looks.
        let created = self.take_or_create(opening).inspect_err(|_| self.batch = None)?;
        self.last_window.insert(team.clone(), created.window);
        self.pending_layouts.insert(created.window, *layout);
        let owner = opening.spawn.pane_tag();
        self.batch.iter_mut().for_each(|burst| burst.add_pane(&created, &owner));
        let next = next.filter(|next| next.team == *team && next.layout == *layout);
        let room = next.and_then(|next| Some((self.batch.as_ref()?.window_for(next)?, next)));
        let beside = room.map(|(window, next)| (window, &next.argv[..]));
        let server = self.connect()?;
        let claimed = server.tag_and_pipe(created, &owner, &opening.label, &opening.output_logger, beside)?;
        let epoch = server.epoch().clone();
        if let (Some(burst), Some((_, next)), Some(made)) = (&mut self.batch, room, claimed.next_pane) {
            burst.next_pane = Some((next.spawn.clone(), made));
        }
        // Without it the agent runs all the same; what `logs` lacks then, the log tells.
        if claimed.tagged.is_err() {
            self.batch.iter_mut().for_each(OpenBatch::clear_rows);
        }
        claimed.tagged?;
        claimed
            .window_configured
            .unwrap_or_else(|error| tracing::warn!("cannot set up {}: {error}", created.window));
        claimed.piped.unwrap_or_else(|error| tracing::warn!("cannot record {}: {error}", created.pane));
        Ok(OpenedPane { pane: created.pane, window: created.window, epoch, pid: created.pid })
    }

    fn take_or_create(&mut self, opening: &PaneSpec) -> Result<CreatedPane, Error> {
        match self.batch.as_mut().and_then(|burst| burst.next_pane.take_if(|(of, _)| *of == opening.spawn)) {
            None => self.create_or_reconnect(opening, None),
            Some((_, Err(Error::NoSpace { window }))) => self.create_or_reconnect(opening, Some(window)),
            Some((_, Err(Error::Rejected { .. }))) => {
                self.batch = None;
                self.create_or_reconnect(opening, None)
            }
            Some((_, made)) => made,
        }
    }

    /// In the `crowded` window a split has found no space just now.
    fn create_or_reconnect(
        &mut self,
        opening: &PaneSpec,
        crowded: Option<WindowId>,
    ) -> Result<CreatedPane, Error> {
        let was_connected = self.server.is_some();
        match self.create(opening, crowded) {
            // Nothing was made: another server answered.
            Err(error) if was_connected && is_server_gone(&error) => {
                self.reconnect()?;
                self.create(opening, None)
            }
            made => made,
        }
    }

    fn create(&mut self, opening: &PaneSpec, crowded: Option<WindowId>) -> Result<CreatedPane, Error> {
        let PaneSpec { team, argv, layout, .. } = opening;
        let split = match crowded {
            Some(window) => self.connect()?.tile_then_split(window, argv),
            None => match self.find_window(team, &opening.neighbors, *layout)? {
                Some(window) => self.connect()?.split(window, argv),
                None => return self.new_window(team, argv),
            },
        };
        match split {
            Err(Error::NoSpace { .. }) => {
                self.batch = None;
                self.new_window(team, argv)
            }
            made => made,
        }
    }

    /// A window of the team with room for one more. The one that had the last pane is asked first, alone: of a team of
    /// hundreds most have none.
    fn find_window(
        &mut self,
        team: &TeamName,
        beside: &[PaneTag],
        layout: Layout,
    ) -> Result<Option<WindowId>, Error> {
        let mut burst = self.batch.take().filter(|burst| burst.team == *team);
        if let Some(latest) = self.last_window.get(team).copied() {
            let known = burst.as_mut().and_then(|burst| burst.window.take_if(|(of, _)| *of == latest));
            let rows =
                known.map(|(_, rows)| rows).or_else(|| self.connect().ok()?.list_window_panes(latest).ok());
            if let Some(rows) = rows
                && let Some(window) = window_with_space(&rows, beside, layout)
            {
                let full = burst.is_some_and(|burst| burst.others_are_full);
                let rows = Some((window, rows));
                self.batch = Some(OpenBatch {
                    team: team.clone(),
                    window: rows,
                    others_are_full: full,
                    next_pane: None,
                });
                return Ok(Some(window));
            }
        }
        let roomy = match beside.is_empty() || burst.is_some_and(|burst| burst.others_are_full) {
            true => None,
            false => window_with_space(&self.list_panes()?, beside, layout),
        };
        let others_are_full = roomy.is_none() && !beside.is_empty();
        self.batch = Some(OpenBatch { team: team.clone(), window: None, others_are_full, next_pane: None });
        Ok(roomy)
    }

    fn new_window(&mut self, team: &TeamName, argv: &[String]) -> Result<CreatedPane, Error> {
        if let Some(session) = self.daemon_tmux_session()? {
            match self.connect()?.new_window(session, team.as_str(), argv) {
                // The session may have ended since we saw it.
                Err(Error::Rejected { .. }) => self.tmux_session = None,
                result => return result,
            }
        }
        let name = self.own_tmux_session_name()?;
        let created = self.connect()?.new_session(&name, team.as_str(), argv)?;
        self.tmux_session = Some(created.session);
        Ok(created)
    }

    /// The session of teamd's own pane, or the one made for the first window.
    pub(super) fn daemon_tmux_session(&mut self) -> Result<Option<SessionId>, Error> {
        if let (None, Some(pane)) = (self.tmux_session, self.tmux_location.pane) {
            self.tmux_session = self.connect()?.pane_session(pane).ok();
        }
        Ok(self.tmux_session)
    }

    /// For windows where teamd has no pane of its own. On the next server it has another name: whoever brings back the
    /// sessions of a server that was killed has one of this name, and not ours.
    pub(super) fn own_tmux_session_name(&mut self) -> Result<String, Error> {
        Ok(format!("teamd-{}-{}", std::process::id(), self.connect()?.epoch().pid))
    }
}

/// Where it can't be had, the recorder can't write either, and says so.
fn create_log_directory(log: &Path) {
    if let Some(directory) = log.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
    }
}
