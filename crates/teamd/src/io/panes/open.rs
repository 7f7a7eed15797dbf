//! Opens a pane for a new agent: chooses a window of the team, splits it, and tags the pane.

use crate::core::jobs::pane_jobs::{OpenedPane, PaneSpec};
use crate::core::roster::agent_record::AgentPane;
use crate::core::spawn_lifecycle::ExpectedShim;
use crate::io::mark_spawn_in_output_log::mark_spawn_in_log;
use crate::io::panes::cached_window_and_prepared_pane::PaneOpeningCache;
use crate::io::panes::run_pane_jobs::{PaneManager, is_server_gone};
use crate::io::panes::window_space::window_with_space;
use protocol::control_socket::Layout;
use protocol::team_and_member_names::TeamName;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tmux::{CreatedPane, Error, NextPane, PaneTag, SessionId, WindowId};

impl PaneManager {
    /// Opens a pane, tags it, and pipes its output to the output logger.
    ///
    /// `next` describes the pane that the next job will open. If both panes belong to the same team
    /// and the window has space, the next pane is created in the same round trip to tmux. This
    /// saves time.
    pub(super) fn open(&mut self, opening: &PaneSpec, next: Option<&PaneSpec>) -> Result<OpenedPane, Error> {
        let PaneSpec { team, layout, .. } = opening;
        create_log_directory(&opening.log);
        mark_spawn_in_log(&opening.log);
        // After an error, the cache may be out of date. Without it, the windows are listed again
        // for the next pane.
        let created = self.take_or_create(opening).inspect_err(|_| self.opening_cache = None)?;
        self.last_window.insert(team.clone(), created.window);
        self.pending_layouts.insert(created.window, *layout);
        let owner = opening.spawn.pane_tag();
        self.opening_cache.iter_mut().for_each(|batch| batch.add_pane(&created, &owner));
        let next = next.filter(|next| next.team == *team && next.layout == *layout);
        let next_split = next.and_then(|next| Some((self.opening_cache.as_ref()?.window_for(next)?, next)));
        let split = next_split.map(|(window, next)| NextPane { window, argv: &next.argv });
        let server = self.connect()?;
        let outcome = server.tag_and_pipe(&created, &owner, &opening.label, &opening.output_logger, split)?;
        let epoch = server.epoch().clone();
        if let (Some(batch), Some((_, next)), Some(result)) =
            (&mut self.opening_cache, next_split, outcome.next_pane)
        {
            batch.next_pane = Some((next.spawn.clone(), result));
        }
        if outcome.tagged.is_err() {
            self.opening_cache.iter_mut().for_each(PaneOpeningCache::clear_rows);
        }
        outcome.tagged?;
        // The agent starts even if the options of its window could not be set, or if its output
        // can't be recorded. Either error is only logged.
        outcome
            .window_configured
            .unwrap_or_else(|error| tracing::warn!("cannot set up {}: {error}", created.window));
        outcome.piped.unwrap_or_else(|error| tracing::warn!("cannot record {}: {error}", created.pane));
        let pane = AgentPane {
            id: created.pane.to_string(),
            window: created.window.to_string(),
            location: created.location,
            server_epoch: epoch.to_string(),
            it2: None,
        };
        Ok(OpenedPane { pane, shim: ExpectedShim::Pid(created.pid) })
    }

    /// Returns the pane for `opening`. It was created in advance with the previous pane, or else is
    /// created now.
    fn take_or_create(&mut self, opening: &PaneSpec) -> Result<CreatedPane, Error> {
        let batch = self.opening_cache.as_mut();
        match batch.and_then(|batch| batch.next_pane.take_if(|(spawn, _)| *spawn == opening.spawn)) {
            None => self.create_or_reconnect(opening, None),
            Some((_, Err(Error::NoSpace { window }))) => self.create_or_reconnect(opening, Some(window)),
            Some((_, Err(Error::Rejected { .. }))) => {
                self.opening_cache = None;
                self.create_or_reconnect(opening, None)
            }
            Some((_, created)) => created,
        }
    }

    /// Creates a pane. If the tmux server has exited, first connects to the new server at the same
    /// address.
    ///
    /// `crowded` is a window of the team in which tmux has just refused to split a pane for lack of
    /// space. The panes of this window are tiled (given equal sizes), and then the split is tried
    /// again.
    fn create_or_reconnect(
        &mut self,
        opening: &PaneSpec,
        crowded: Option<WindowId>,
    ) -> Result<CreatedPane, Error> {
        let was_connected = self.server.is_some();
        match self.create(opening, crowded) {
            // The call has created no pane, because the known server is gone.
            Err(error) if was_connected && is_server_gone(&error) => {
                self.reconnect()?;
                self.create(opening, None)
            }
            created => created,
        }
    }

    /// Splits a window of the team. Creates a new window if none has space.
    fn create(&mut self, opening: &PaneSpec, crowded: Option<WindowId>) -> Result<CreatedPane, Error> {
        let PaneSpec { team, argv, layout, .. } = opening;
        if let Some(created) = self.open_beside_person(opening)? {
            return Ok(created);
        }
        let split = match crowded {
            Some(window) => self.connect()?.tile_then_split(window, argv),
            None => match self.find_window(team, &opening.neighbors, *layout)? {
                Some(window) => self.connect()?.split(window, argv),
                None => return self.new_window(team, argv),
            },
        };
        match split {
            Err(Error::NoSpace { .. }) => {
                self.opening_cache = None;
                self.new_window(team, argv)
            }
            created => created,
        }
    }

    /// Finds a window of the team with space for one more pane. `neighbors` has the pane tags of
    /// the team's agents. Returns `None` if no window has space. Stores what is now known about the
    /// windows in `self.opening_cache`, for the next pane.
    ///
    /// The window of the team's last opened pane is checked first. If that window has space, the
    /// panes of other windows are not listed. This saves time in a team of hundreds of agents,
    /// where most windows are full.
    fn find_window(
        &mut self,
        team: &TeamName,
        neighbors: &[PaneTag],
        layout: Layout,
    ) -> Result<Option<WindowId>, Error> {
        let mut batch = self.opening_cache.take().filter(|batch| batch.team == *team);
        if let Some(last_window) = self.last_window.get(team).copied() {
            let cached =
                batch.as_mut().and_then(|batch| batch.window.take_if(|(window, _)| *window == last_window));
            let rows = cached
                .map(|(_, rows)| rows)
                .or_else(|| self.connect().ok()?.list_window_panes(last_window).ok());
            if let Some(rows) = rows
                && let Some(window) = window_with_space(&rows, neighbors, layout)
            {
                let others_are_full = batch.is_some_and(|batch| batch.others_are_full);
                let rows = Some((window, rows));
                self.opening_cache = Some(PaneOpeningCache {
                    team: team.clone(),
                    window: rows,
                    others_are_full,
                    next_pane: None,
                });
                return Ok(Some(window));
            }
        }
        let window = match neighbors.is_empty() || batch.is_some_and(|batch| batch.others_are_full) {
            true => None,
            false => window_with_space(&self.list_panes()?, neighbors, layout),
        };
        let others_are_full = window.is_none() && !neighbors.is_empty();
        self.opening_cache =
            Some(PaneOpeningCache { team: team.clone(), window: None, others_are_full, next_pane: None });
        Ok(window)
    }

    /// Creates a window for the team in the daemon's tmux session. Creates the tmux session if the
    /// daemon has none.
    fn new_window(&mut self, team: &TeamName, argv: &[String]) -> Result<CreatedPane, Error> {
        if let Some(session) = self.daemon_tmux_session()? {
            match self.connect()?.new_window(session, team.as_str(), argv) {
                Err(error @ Error::Rejected { .. }) => self.forget_ended_session(session, error)?,
                result => return result,
            }
        }
        let name = self.own_tmux_session_name()?;
        let created = self.connect()?.new_session(&name, team.as_str(), argv)?;
        self.tmux_session = Some(created.session);
        Ok(created)
    }

    /// Handles the error with which tmux refused to create a window. If the daemon's tmux session
    /// has ended, forgets its id, so that the caller can create a new session.
    ///
    /// # Errors
    ///
    /// `error` if the session still exists: tmux then refused for another reason.
    pub(super) fn forget_ended_session(&mut self, session: SessionId, error: Error) -> Result<(), Error> {
        if self.connect()?.session_exists(session)? {
            return Err(error);
        }
        self.tmux_session = None;
        Ok(())
    }

    /// The tmux session in which the daemon creates windows. This is the session of the daemon's
    /// own pane, or the session that the daemon created for its first window. `None` if the daemon
    /// has neither.
    pub(super) fn daemon_tmux_session(&mut self) -> Result<Option<SessionId>, Error> {
        if let (None, Some(pane)) = (self.tmux_session, self.tmux_location.pane) {
            self.tmux_session = self.connect()?.pane_session(pane).ok();
        }
        Ok(self.tmux_session)
    }

    /// The name of the tmux session that the daemon creates for its windows if it does not run in a
    /// tmux pane.
    ///
    /// The name contains the pid of the tmux server, so that it is different on each server. A tmux
    /// plugin may restore the sessions of a killed server under their old names, and the daemon
    /// must not use a restored session.
    pub(super) fn own_tmux_session_name(&mut self) -> Result<String, Error> {
        Ok(format!("teamd-{}-{}", std::process::id(), self.connect()?.epoch().pid))
    }
}

/// Creates the directory of an agent's log. A failure is only logged: the agent runs without a log.
fn create_log_directory(log: &Path) {
    if let Some(directory) = log.parent() {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        created.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
    }
}
