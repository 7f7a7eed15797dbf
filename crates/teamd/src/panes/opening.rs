//! A pane for a new agent, in a window of its team.

use super::room::roomy_window;
use super::{Opening, Panes, is_gone};
use crate::roster::SpawnId;
use crate::step::Opened;
use protocol::control::Layout;
use protocol::name::TeamName;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tmux::{CreatedPane, Error, PaneRow, PaneTag, SessionId, WindowId};

impl Panes {
    /// Of those that are opened at once the next one's pane is made with the claim of this one.
    pub(super) fn open(&mut self, opening: &Opening, next: Option<&Opening>) -> Result<Opened, Error> {
        let Opening { team, layout, .. } = opening;
        make_room_for(&opening.log);
        // Of what was known something is not so: the next one looks.
        let created = self.created(opening).inspect_err(|_| self.burst = None)?;
        self.latest.insert(team.clone(), created.window);
        self.untidy.insert(created.window, *layout);
        let owner = opening.spawn.owner();
        self.burst.iter_mut().for_each(|burst| burst.joined(&created, &owner));
        let next = next.filter(|next| next.team == *team && next.layout == *layout);
        let room = next.and_then(|next| Some((self.burst.as_ref()?.room_for(next)?, next)));
        let beside = room.map(|(window, next)| (window, &next.argv[..]));
        let server = self.server()?;
        let claimed = server.tag_and_pipe(created, &owner, &opening.label, &opening.record, beside)?;
        let epoch = server.epoch().clone();
        if let (Some(burst), Some((_, next)), Some(made)) = (&mut self.burst, room, claimed.next_pane) {
            burst.made = Some((next.spawn.clone(), made));
        }
        // Without it the agent runs all the same; what `logs` lacks then, the log tells.
        if claimed.tagged.is_err() {
            self.burst.iter_mut().for_each(Burst::forget);
        }
        claimed.tagged?;
        claimed
            .window_configured
            .unwrap_or_else(|error| tracing::warn!("cannot set up {}: {error}", created.window));
        claimed.piped.unwrap_or_else(|error| tracing::warn!("cannot record {}: {error}", created.pane));
        Ok(Opened { pane: created.pane, window: created.window, epoch, pid: created.pid })
    }

    fn created(&mut self, opening: &Opening) -> Result<CreatedPane, Error> {
        match self.burst.as_mut().and_then(|burst| burst.made.take_if(|(of, _)| *of == opening.spawn)) {
            None => self.make(opening, None),
            Some((_, Err(Error::NoSpace { window }))) => self.make(opening, Some(window)),
            Some((_, Err(Error::Rejected { .. }))) => {
                self.burst = None;
                self.make(opening, None)
            }
            Some((_, made)) => made,
        }
    }

    /// In the `crowded` window a split has found no space just now.
    fn make(&mut self, opening: &Opening, crowded: Option<WindowId>) -> Result<CreatedPane, Error> {
        let was_connected = self.server.is_some();
        match self.make_here(opening, crowded) {
            // Nothing was made: another server answered.
            Err(error) if was_connected && is_gone(&error) => {
                self.server_anew()?;
                self.make_here(opening, None)
            }
            made => made,
        }
    }

    fn make_here(&mut self, opening: &Opening, crowded: Option<WindowId>) -> Result<CreatedPane, Error> {
        let Opening { team, argv, layout, .. } = opening;
        let split = match crowded {
            Some(window) => self.server()?.tile_then_split(window, argv),
            None => match self.room(team, &opening.beside, *layout)? {
                Some(window) => self.server()?.split(window, argv),
                None => return self.window(team, argv),
            },
        };
        match split {
            Err(Error::NoSpace { .. }) => {
                self.burst = None;
                self.window(team, argv)
            }
            made => made,
        }
    }

    /// A window of the team with room for one more. The one that had the last pane is asked first, alone: of a team of
    /// hundreds most have none.
    fn room(
        &mut self,
        team: &TeamName,
        beside: &[PaneTag],
        layout: Layout,
    ) -> Result<Option<WindowId>, Error> {
        let mut burst = self.burst.take().filter(|burst| burst.team == *team);
        if let Some(latest) = self.latest.get(team).copied() {
            let known = burst.as_mut().and_then(|burst| burst.rows.take_if(|(of, _)| *of == latest));
            let rows =
                known.map(|(_, rows)| rows).or_else(|| self.server().ok()?.list_window_panes(latest).ok());
            if let Some(rows) = rows
                && let Some(window) = roomy_window(&rows, beside, layout)
            {
                let full = burst.is_some_and(|burst| burst.others_are_full);
                let rows = Some((window, rows));
                self.burst = Some(Burst { team: team.clone(), rows, others_are_full: full, made: None });
                return Ok(Some(window));
            }
        }
        let roomy = match beside.is_empty() || burst.is_some_and(|burst| burst.others_are_full) {
            true => None,
            false => roomy_window(&self.rows()?, beside, layout),
        };
        let others_are_full = roomy.is_none() && !beside.is_empty();
        self.burst = Some(Burst { team: team.clone(), rows: None, others_are_full, made: None });
        Ok(roomy)
    }

    fn window(&mut self, team: &TeamName, argv: &[String]) -> Result<CreatedPane, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.new_window(session, team.as_str(), argv) {
                // The session may have ended since we saw it.
                Err(Error::Rejected { .. }) => self.session = None,
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
            self.session = self.server()?.pane_session(pane).ok();
        }
        Ok(self.session)
    }

    /// For windows where teamd has no pane of its own. On the next server it has another name: whoever brings back the
    /// sessions of a server that was killed has one of this name, and not ours.
    pub(super) fn own_session(&mut self) -> Result<String, Error> {
        Ok(format!("teamd-{}-{}", std::process::id(), self.server()?.epoch().pid))
    }
}

/// Panes of one team that are opened at once behind one another, and what is known of its windows from the last.
pub(super) struct Burst {
    team: TeamName,
    /// The window that the next one goes to if it has room, with the panes in it.
    rows: Option<(WindowId, Vec<PaneRow>)>,
    /// Nor had any other window of the team room when all were looked at.
    others_are_full: bool,
    /// The pane of the one that comes next.
    made: Option<(SpawnId, Result<CreatedPane, Error>)>,
}

impl Burst {
    /// The window that it goes to, as far as that is known without a look.
    fn room_for(&self, next: &Opening) -> Option<WindowId> {
        roomy_window(&self.rows.as_ref()?.1, &next.beside, next.layout)
    }

    /// What the windows are like, but not what is made.
    fn forget(&mut self) {
        (self.rows, self.others_are_full) = (None, false);
    }

    /// The one that was just made: where it is beside those that are known, it is as they are.
    fn joined(&mut self, created: &CreatedPane, owner: &PaneTag) {
        let owner = Some(owner.as_str().to_owned());
        match &mut self.rows {
            _ if created.is_first_in_window => {
                self.rows = Some((created.window, vec![alone(created, owner)]))
            }
            Some((window, rows)) if *window == created.window => {
                let beside = rows.first().cloned();
                let row =
                    |it| PaneRow { pane: created.pane, pid: created.pid, tag: owner, is_dead: false, ..it };
                rows.extend(beside.map(row));
            }
            _ => {}
        }
    }
}

/// In a new window of ours.
fn alone(created: &CreatedPane, owner: Option<String>) -> PaneRow {
    let CreatedPane { pane, window, session, pid, size: (width, height), .. } = *created;
    let (dead, zoomed, hidden, home) = (false, false, false, true);
    PaneRow {
        pane,
        window,
        session,
        pid,
        is_dead: dead,
        tag: owner,
        is_zoomed: zoomed,
        is_hidden: hidden,
        is_teamd_window: home,
        width,
        height,
    }
}

/// Where it can't be had, the recorder can't write either, and says so.
fn make_room_for(log: &Path) {
    if let Some(directory) = log.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
    }
}
