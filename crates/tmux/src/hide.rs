//! Panes out of sight, and back.
//!
//! A hidden pane has a window of its own in a session that nobody is attached to. That session begins with the first
//! pane that is hidden and ends with the last one, so it outlives us. What a pane is hidden or shown by is one guarded
//! step inside the server, the session included: killed at any instant, we leave no session without a pane of ours.

use tmux_interface::{BreakPane, HasSession, JoinPane, NewSession, ResizePane, TmuxCommand};

use crate::client::session_option;
use crate::deadline::Deadline;
use crate::guard::{both, either};
use crate::layout::tiling;
use crate::script::Script;
use crate::{Error, Owner, PaneId, PaneRow, Server, SessionId, WindowId, kill, word};

/// The session of hidden panes.
pub(crate) const HIDDEN: &str = "_teamd-hidden";

impl Server {
    /// Takes a pane out of its window, out of sight; one that is hidden already stays so. Whoever sees another pane
    /// of that window zoomed goes on to.
    ///
    /// # Errors
    /// `NoPane`; `NotOurs`; `Invalid` for a window's name that is not plain.
    pub fn hide(&mut self, pane: PaneId, owner: &Owner, window: &str) -> Result<(), Error> {
        let deadline = Deadline::of("hide a pane");
        if self.owned(pane, owner, deadline)?.hidden {
            return Ok(());
        }
        self.take_out(pane, owner, &Session::Named(HIDDEN), window, deadline)?;
        self.moved(pane, deadline, |row| row.hidden)
    }

    /// Puts a pane into a window beside those that are there. Where there is no space they are tiled first.
    ///
    /// # Errors
    /// `NotOurs`; `NoSpace` if that does not help; `Failed` where the window is gone.
    pub fn put_beside(&mut self, pane: PaneId, owner: &Owner, window: WindowId) -> Result<(), Error> {
        let deadline = Deadline::of("show a pane");
        let script = joining(pane, window)?;
        match self.guarded(deadline, pane, owner, &script) {
            Err(error) if error.is_no_space() => {
                self.ask(&tiling(window)?, deadline)?.done(deadline.verb())?;
                let again = self.guarded(deadline, pane, owner, &script);
                again.map_err(|error| if error.is_no_space() { Error::NoSpace { window } } else { error })?;
            }
            result => drop(result?),
        }
        self.moved(pane, deadline, |row| row.window == window)
    }

    /// Gives a pane a window of its own in a session, with a border that shows its label.
    ///
    /// # Errors
    /// `NotOurs`; `Invalid` for a name that is not plain; `Failed` where the session is gone.
    pub fn put_into(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        session: SessionId,
        window: &str,
    ) -> Result<WindowId, Error> {
        let deadline = Deadline::of("show a pane");
        self.take_out(pane, owner, &Session::Known(session), window, deadline)?;
        self.dress(pane, deadline)
    }

    /// The same in the session of that name, which is made if there is none.
    ///
    /// # Errors
    /// As [`Server::put_into`].
    pub fn put_into_named(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        session: &str,
        window: &str,
    ) -> Result<WindowId, Error> {
        let deadline = Deadline::of("show a pane");
        self.take_out(pane, owner, &Session::Named(word::name(session)?), window, deadline)?;
        self.dress(pane, deadline)
    }

    /// Its window becomes one of ours.
    fn dress(&mut self, pane: PaneId, deadline: Deadline) -> Result<WindowId, Error> {
        let row = self.row(pane, deadline)?.filter(|row| !row.hidden).ok_or(Error::NoPane { pane })?;
        self.dress_window(row.window, deadline)?;
        Ok(row.window)
    }

    fn take_out(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        session: &Session<'_>,
        window: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let row = self.owned(pane, owner, deadline)?;
        let window = word::name(window)?;
        let there = match session {
            Session::Known(_) => true,
            Session::Named(name) => self.has_session(name, deadline)?,
        };
        let script = match session {
            Session::Known(id) => breaking(pane, &format!("{id}:"), window),
            Session::Named(name) if there => breaking(pane, &format!("={name}:"), window),
            Session::Named(name) => in_a_new_session(pane, name, window),
        };
        let act = keeping_zoom(&row, &script)?;
        self.guarded(deadline, pane, owner, &act).map(drop)
    }

    fn has_session(&mut self, name: &str, deadline: Deadline) -> Result<bool, Error> {
        let command = HasSession::new().target_session(format!("={name}")).build();
        match self.ask(&Script::of(&command), deadline)?.done(deadline.verb()) {
            Ok(()) => Ok(true),
            Err(Error::Failed { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn owned(&mut self, pane: PaneId, owner: &Owner, deadline: Deadline) -> Result<PaneRow, Error> {
        let row = self.row(pane, deadline)?.ok_or(Error::NoPane { pane })?;
        if row.owner.as_deref() != Some(owner.as_str()) {
            return Err(Error::NotOurs { verb: deadline.verb(), pane });
        }
        Ok(row)
    }

    /// That it is where it was put; a list says so, never an answer alone.
    fn moved(
        &mut self,
        pane: PaneId,
        deadline: Deadline,
        there: impl Fn(&PaneRow) -> bool,
    ) -> Result<(), Error> {
        match self.row(pane, deadline)? {
            None => Err(Error::NoPane { pane }),
            Some(row) if there(&row) => Ok(()),
            Some(row) => {
                let cause = format!("pane {pane} is in window {} of {}", row.window, row.session);
                Err(Error::Failed { verb: deadline.verb(), cause })
            }
        }
    }
}

/// Where a window is to be.
enum Session<'a> {
    Known(SessionId),
    Named(&'a str),
}

fn breaking(pane: PaneId, session: &str, window: &str) -> Script {
    let command = BreakPane::new().detached().src_pane(pane.to_string()).dst_window(session);
    Script::of(&command.window_name(window).build())
}

/// tmux makes no session without a pane; the one that it begins with goes at once, and stands first in it.
fn in_a_new_session(pane: PaneId, name: &str, window: &str) -> Script {
    let session = NewSession::new().detached().not_update_env().start_directory("/");
    let session = session.session_name(name).width(200).height(50).build();
    Script::of(&waiting(session))
        .then(&session_option(name, "destroy-unattached", "off"))
        .and(breaking(pane, &format!("={name}:"), window))
        .then(&kill::first_of(name))
}

/// With something in it that does nothing, and ends with its terminal.
fn waiting(mut session: TmuxCommand<'_>) -> TmuxCommand<'_> {
    session.push_param("--");
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    session
}

/// A window that was zoomed stays so.
fn joining(pane: PaneId, window: WindowId) -> Result<Script, Error> {
    let window = window.to_string();
    let join = JoinPane::new().detached().src_pane(pane.to_string()).dst_pane(window.as_str()).build();
    let join = Script::of(&join);
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    either(&window, "#{window_zoomed_flag}", &join.clone().then(&zoom), &join)
}

/// Holds on a pane that another one of its window is zoomed over.
pub(crate) fn behind_a_zoom() -> String {
    both("#{window_zoomed_flag}", "#{!=:#{pane_active},1}")
}

/// tmux ends a window's zoom with any pane that leaves it. The zoomed one is the active one, so it is zoomed again,
/// unless it is the one to go, or the pane has moved to another window since it was listed.
pub(crate) fn keeping_zoom(row: &PaneRow, act: &Script) -> Result<Script, Error> {
    let (pane, window) = (row.pane.to_string(), row.window.to_string());
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    let behind = both(&behind_a_zoom(), &format!("#{{==:#{{window_id}},{window}}}"));
    either(&pane, &behind, &act.clone().then(&zoom), act)
}
