//! Hides panes and shows them again.
//!
//! Each hidden pane has its own window in the session of hidden panes, to which no client is
//! attached. The session is created for the first hidden pane, and ends when the last hidden pane
//! leaves it. The session survives this process. tmux creates the session and moves the pane into
//! it in one step. So even if this process is killed, the session is never left without a hidden
//! pane.

use tmux_interface::{BreakPane, HasSession, NewSession, ResizePane, TmuxCommand};

use crate::apply_layout::tile_commands;
use crate::command_list::CommandList;
use crate::control_client_process::set_session_option;
use crate::if_shell::if_else;
use crate::keep_window_zoomed::with_zoom_restored;
use crate::list_panes::HIDDEN_SESSION;
use crate::pane_place::{PanePlace, join_command};
use crate::run_commands_of_one_call::TmuxCall;
use crate::{
    Error, InvalidArgument, PaneId, PaneRow, PaneTag, SessionId, TmuxServer, WindowId, kill_pane,
    validate_names_and_commands,
};

impl TmuxServer {
    /// Moves a pane into the session of hidden panes, in a new window with the name `window`. Does
    /// nothing if the pane is hidden already. If another pane of its old window is zoomed, that
    /// pane stays zoomed.
    ///
    /// # Errors
    ///
    /// `PaneNotFound`; `NotOwned` if the pane does not have the tag `tag`; `InvalidArgument` if
    /// `window` is not a valid name.
    pub fn hide(&mut self, pane: PaneId, tag: &PaneTag, window: &str) -> Result<(), Error> {
        let mut call = self.call("hide a pane");
        if call.tagged_row(pane, tag)?.is_hidden {
            return Ok(());
        }
        call.move_to_session(pane, tag, &SessionTarget::Name(HIDDEN_SESSION), window)?;
        call.check_moved(pane, |row| row.is_hidden)
    }

    /// Moves a pane to `place` in the window `window`, which must be a teamd window (created by
    /// this crate). If there is no room, tmux tiles the panes (gives them equal sizes), and the
    /// move is tried again.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag `tag`; `NoSpace` if there is still no room;
    /// `Rejected` if the window does not exist.
    pub fn show_in_window(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        window: WindowId,
        place: PanePlace,
    ) -> Result<(), Error> {
        let commands = join_commands(pane, window, place)?;
        let mut call = self.call("show a pane");
        match call.run_if_tagged(pane, tag, &commands) {
            Err(error) if error.is_no_space() => {
                call.run(&tile_commands(window)?)?.into_result()?;
                let retried = call.run_if_tagged(pane, tag, &commands);
                retried
                    .map_err(|error| if error.is_no_space() { Error::NoSpace { window } } else { error })?;
            }
            result => drop(result?),
        }
        call.check_moved(pane, |row| row.window == window)
    }

    /// Whether a session exists.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or does not reply: `Connect`, `OtherServer`,
    /// `ProgramNotStarted`, `Timeout` or `Disconnected`.
    pub fn session_exists(&mut self, session: SessionId) -> Result<bool, Error> {
        self.call("find a session").has_session(&session.to_string())
    }

    /// Moves a pane into a new window of a session. The window gets the name `window`, and becomes
    /// a teamd window: the border of each pane shows the pane's label. Returns the id of the
    /// window.
    ///
    /// # Errors
    ///
    /// `PaneNotFound`; `NotOwned` if the pane does not have the tag `tag`; `InvalidArgument` if the
    /// name is not valid; `Rejected` if the session does not exist, or if tmux refuses the move.
    pub fn show_in_session(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        session: SessionId,
        window: &str,
    ) -> Result<WindowId, Error> {
        self.call("show a pane").show_in(pane, tag, &SessionTarget::Id(session), window)
    }

    /// Moves a pane into a new teamd window, like [`TmuxServer::show_in_session`], but takes the
    /// name of the session instead of its id. Creates the session if it does not exist.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::show_in_session`].
    pub fn show_in_named_session(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        session: &str,
        window: &str,
    ) -> Result<WindowId, Error> {
        let session = SessionTarget::Name(validate_names_and_commands::check_name(session)?);
        self.call("show a pane").show_in(pane, tag, &session, window)
    }
}

impl TmuxCall<'_> {
    /// Moves a pane into a new teamd window of a session. Returns the window.
    fn show_in(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        session: &SessionTarget<'_>,
        window: &str,
    ) -> Result<WindowId, Error> {
        self.move_to_session(pane, tag, session, window)?;
        let row = self.pane_row(pane)?.filter(|row| !row.is_hidden).ok_or(Error::PaneNotFound { pane })?;
        self.configure_window(row.window)?;
        Ok(row.window)
    }

    /// Moves a pane into a new window of a session. If the session is given by its name and does
    /// not exist, creates it.
    fn move_to_session(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        session: &SessionTarget<'_>,
        window: &str,
    ) -> Result<(), Error> {
        let row = self.tagged_row(pane, tag)?;
        let window = validate_names_and_commands::check_name(window)?;
        let commands = match session {
            SessionTarget::Id(id) => break_pane_command(pane, &format!("{id}:"), window),
            SessionTarget::Name(name) if self.has_session(&format!("={name}"))? => {
                break_pane_command(pane, &format!("={name}:"), window)
            }
            SessionTarget::Name(name) => break_into_new_session(pane, name, window),
        };
        self.run_if_tagged(pane, tag, &with_zoom_restored(&row, &commands)?).map(drop)
    }

    /// Whether the session `target` exists, such as `=NAME` or `$ID`.
    fn has_session(&mut self, target: &str) -> Result<bool, Error> {
        let command = HasSession::new().target_session(target).build();
        match self.run(&CommandList::new(&command))?.into_result() {
            Ok(()) => Ok(true),
            Err(Error::Rejected { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Returns the row of a pane in tmux's list of panes. The pane must have the tag `tag`.
    ///
    /// # Errors
    ///
    /// `PaneNotFound`; `NotOwned` if the pane has another tag.
    fn tagged_row(&mut self, pane: PaneId, tag: &PaneTag) -> Result<PaneRow, Error> {
        let row = self.pane_row(pane)?.ok_or(Error::PaneNotFound { pane })?;
        if row.tag.as_deref() != Some(tag.as_str()) {
            return Err(Error::NotOwned { action: self.action(), pane });
        }
        Ok(row)
    }

    /// Checks that a pane was moved. Looks the pane up in tmux's list of panes, because the reply
    /// to the move command does not prove the move. `is_moved` says whether the pane's row in this
    /// list shows the new place.
    ///
    /// # Errors
    ///
    /// `PaneNotFound` if the pane does not exist; `Rejected` if `is_moved` returns false.
    fn check_moved(&mut self, pane: PaneId, is_moved: impl Fn(&PaneRow) -> bool) -> Result<(), Error> {
        match self.pane_row(pane)? {
            None => Err(Error::PaneNotFound { pane }),
            Some(row) if is_moved(&row) => Ok(()),
            Some(row) => {
                let cause = format!("pane {pane} is in window {} of {}", row.window, row.session);
                Err(Error::Rejected { action: self.action(), cause })
            }
        }
    }
}

/// The session that gets a new window.
enum SessionTarget<'a> {
    /// A session that exists.
    Id(SessionId),
    /// A session that is created if it does not exist.
    Name(&'a str),
}

/// Returns the command that moves a pane into a new window of `session`.
fn break_pane_command(pane: PaneId, session: &str, window: &str) -> CommandList {
    let command = BreakPane::new().detached().src_pane(pane.to_string()).dst_window(session);
    CommandList::new(&command.window_name(window).build())
}

/// Returns the commands that create a session and move a pane into it.
///
/// tmux cannot create a session without a pane, so the session begins with a placeholder pane in
/// its first window. The last command kills the placeholder.
fn break_into_new_session(pane: PaneId, name: &str, window: &str) -> CommandList {
    let session = NewSession::new().detached().not_update_env().start_directory("/");
    let session = session.session_name(name).width(200).height(50).build();
    CommandList::new(&with_placeholder_program(session))
        .with_command(&set_session_option(name, "destroy-unattached", "off"))
        .extend(break_pane_command(pane, &format!("={name}:"), window))
        .with_command(&kill_pane::kill_first_pane_command(name))
}

/// Appends a program that does nothing and exits when its terminal is closed.
fn with_placeholder_program(mut session: TmuxCommand<'_>) -> TmuxCommand<'_> {
    session.push_param("--");
    for word in ["/bin/sh", "-c", "while read -r nothing; do :; done"] {
        session.push_param(word);
    }
    session
}

/// Returns the command that moves a pane to `place` in `window`. A zoomed window stays zoomed.
fn join_commands(pane: PaneId, window: WindowId, place: PanePlace) -> Result<CommandList, InvalidArgument> {
    let join = join_command(pane, window, place);
    let window = window.to_string();
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    if_else(&window, "#{window_zoomed_flag}", &join.clone().with_command(&zoom), &join)
}
