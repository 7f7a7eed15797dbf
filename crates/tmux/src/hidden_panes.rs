//! Panes out of sight, and back.
//!
//! A hidden pane has a window of its own in a session that nobody is attached to. That session begins with the first
//! pane that is hidden and ends with the last one, so it outlives us. What a pane is hidden or shown by is one guarded
//! step inside the server, the session included: killed at any instant, we leave no session without a pane of ours.

use tmux_interface::{BreakPane, HasSession, JoinPane, NewSession, ResizePane, TmuxCommand};

use crate::command_list::CommandList;
use crate::control_client::set_session_option;
use crate::deadline::Deadline;
use crate::guarded_command::{all_of, if_else};
use crate::layout::tile_commands;
use crate::{Error, PaneId, PaneRow, PaneTag, SessionId, TmuxServer, WindowId, kill_pane, validate};

/// The session of hidden panes.
pub(crate) const HIDDEN_SESSION: &str = "_teamd-hidden";

impl TmuxServer {
    /// Takes a pane out of its window, out of sight; one that is hidden already stays so. Whoever sees another pane
    /// of that window zoomed goes on to.
    ///
    /// # Errors
    /// `NoPane`; `NotOurs`; `Invalid` for a window's name that is not plain.
    pub fn hide(&mut self, pane: PaneId, owner: &PaneTag, window: &str) -> Result<(), Error> {
        let deadline = Deadline::for_action("hide a pane");
        if self.tagged_row(pane, owner, deadline)?.is_hidden {
            return Ok(());
        }
        self.move_to_session(pane, owner, &SessionTarget::Name(HIDDEN_SESSION), window, deadline)?;
        self.check_moved(pane, deadline, |row| row.is_hidden)
    }

    /// Puts a pane into a window beside those that are there. Where there is no space they are tiled first.
    ///
    /// # Errors
    /// `NotOurs`; `NoSpace` if that does not help; `Failed` where the window is gone.
    pub fn show_in_window(&mut self, pane: PaneId, owner: &PaneTag, window: WindowId) -> Result<(), Error> {
        let deadline = Deadline::for_action("show a pane");
        let script = join_commands(pane, window)?;
        match self.run_if_tagged(deadline, pane, owner, &script) {
            Err(error) if error.is_no_space() => {
                self.run(&tile_commands(window)?, deadline)?.into_result(deadline.action())?;
                let again = self.run_if_tagged(deadline, pane, owner, &script);
                again.map_err(|error| if error.is_no_space() { Error::NoSpace { window } } else { error })?;
            }
            result => drop(result?),
        }
        self.check_moved(pane, deadline, |row| row.window == window)
    }

    /// Gives a pane a window of its own in a session, with a border that shows its label.
    ///
    /// # Errors
    /// `NotOurs`; `Invalid` for a name that is not plain; `Failed` where the session is gone.
    pub fn show_in_session(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        session: SessionId,
        window: &str,
    ) -> Result<WindowId, Error> {
        let deadline = Deadline::for_action("show a pane");
        self.move_to_session(pane, owner, &SessionTarget::Id(session), window, deadline)?;
        self.configure_pane_window(pane, deadline)
    }

    /// The same in the session of that name, which is made if there is none.
    ///
    /// # Errors
    /// As [`Server::put_into`].
    pub fn show_in_named_session(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        session: &str,
        window: &str,
    ) -> Result<WindowId, Error> {
        let deadline = Deadline::for_action("show a pane");
        self.move_to_session(
            pane,
            owner,
            &SessionTarget::Name(validate::check_name(session)?),
            window,
            deadline,
        )?;
        self.configure_pane_window(pane, deadline)
    }

    /// Its window becomes one of ours.
    fn configure_pane_window(&mut self, pane: PaneId, deadline: Deadline) -> Result<WindowId, Error> {
        let row = self
            .pane_row(pane, deadline)?
            .filter(|row| !row.is_hidden)
            .ok_or(Error::PaneNotFound { pane })?;
        self.configure_window(row.window, deadline)?;
        Ok(row.window)
    }

    fn move_to_session(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        session: &SessionTarget<'_>,
        window: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let row = self.tagged_row(pane, owner, deadline)?;
        let window = validate::check_name(window)?;
        let there = match session {
            SessionTarget::Id(_) => true,
            SessionTarget::Name(name) => self.has_session(name, deadline)?,
        };
        let script = match session {
            SessionTarget::Id(id) => break_pane_command(pane, &format!("{id}:"), window),
            SessionTarget::Name(name) if there => break_pane_command(pane, &format!("={name}:"), window),
            SessionTarget::Name(name) => break_into_new_session(pane, name, window),
        };
        let act = with_zoom_restored(&row, &script)?;
        self.run_if_tagged(deadline, pane, owner, &act).map(drop)
    }

    fn has_session(&mut self, name: &str, deadline: Deadline) -> Result<bool, Error> {
        let command = HasSession::new().target_session(format!("={name}")).build();
        match self.run(&CommandList::new(&command), deadline)?.into_result(deadline.action()) {
            Ok(()) => Ok(true),
            Err(Error::Rejected { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn tagged_row(&mut self, pane: PaneId, owner: &PaneTag, deadline: Deadline) -> Result<PaneRow, Error> {
        let row = self.pane_row(pane, deadline)?.ok_or(Error::PaneNotFound { pane })?;
        if row.tag.as_deref() != Some(owner.as_str()) {
            return Err(Error::NotOwned { action: deadline.action(), pane });
        }
        Ok(row)
    }

    /// That it is where it was put; a list says so, never an answer alone.
    fn check_moved(
        &mut self,
        pane: PaneId,
        deadline: Deadline,
        there: impl Fn(&PaneRow) -> bool,
    ) -> Result<(), Error> {
        match self.pane_row(pane, deadline)? {
            None => Err(Error::PaneNotFound { pane }),
            Some(row) if there(&row) => Ok(()),
            Some(row) => {
                let cause = format!("pane {pane} is in window {} of {}", row.window, row.session);
                Err(Error::Rejected { action: deadline.action(), cause })
            }
        }
    }
}

/// Where a window is to be.
enum SessionTarget<'a> {
    Id(SessionId),
    Name(&'a str),
}

fn break_pane_command(pane: PaneId, session: &str, window: &str) -> CommandList {
    let command = BreakPane::new().detached().src_pane(pane.to_string()).dst_window(session);
    CommandList::new(&command.window_name(window).build())
}

/// tmux makes no session without a pane; the one that it begins with goes at once, and stands first in it.
fn break_into_new_session(pane: PaneId, name: &str, window: &str) -> CommandList {
    let session = NewSession::new().detached().not_update_env().start_directory("/");
    let session = session.session_name(name).width(200).height(50).build();
    CommandList::new(&with_placeholder_program(session))
        .with_command(&set_session_option(name, "destroy-unattached", "off"))
        .extend(break_pane_command(pane, &format!("={name}:"), window))
        .with_command(&kill_pane::kill_first_pane_command(name))
}

/// With something in it that does nothing, and ends with its terminal.
fn with_placeholder_program(mut session: TmuxCommand<'_>) -> TmuxCommand<'_> {
    session.push_param("--");
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    session
}

/// A window that was zoomed stays so.
fn join_commands(pane: PaneId, window: WindowId) -> Result<CommandList, Error> {
    let window = window.to_string();
    let join = JoinPane::new().detached().src_pane(pane.to_string()).dst_pane(window.as_str()).build();
    let join = CommandList::new(&join);
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    if_else(&window, "#{window_zoomed_flag}", &join.clone().with_command(&zoom), &join)
}

/// Holds on a pane that another one of its window is zoomed over.
pub(crate) fn hidden_by_zoom_condition() -> String {
    all_of("#{window_zoomed_flag}", "#{!=:#{pane_active},1}")
}

/// tmux ends a window's zoom with any pane that leaves it. The zoomed one is the active one, so it is zoomed again,
/// unless it is the one to go, or the pane has moved to another window since it was listed.
pub(crate) fn with_zoom_restored(row: &PaneRow, act: &CommandList) -> Result<CommandList, Error> {
    let (pane, window) = (row.pane.to_string(), row.window.to_string());
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    let behind = all_of(&hidden_by_zoom_condition(), &format!("#{{==:#{{window_id}},{window}}}"));
    if_else(&pane, &behind, &act.clone().with_command(&zoom), act)
}
