//! New panes: a session, a window or a split, always detached, always with an argument vector.
//!
//! The command begins at once, and that is all that an answer proves: tmux gives an id for a missing program too.
//! Whether it runs, its own first word must tell. The directory is always `/`, since tmux expands formats in it.

use tmux_interface::{NewSession, NewWindow, SetOption, SplitWindow, TmuxCommand};

use crate::border_label::BORDER_FORMAT;
use crate::command_list::CommandList;
use crate::control_client::set_session_option;
use crate::deadline::Deadline;
use crate::guarded_command::if_else;
use crate::layout::tile_commands;
use crate::reply::CommandReply;
use crate::{Error, PaneId, SessionId, TmuxServer, WindowId, validate};

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedPane {
    /// The new pane.
    pub pane: PaneId,
    /// Its window.
    pub window: WindowId,
    /// Its session.
    pub session: SessionId,
    /// The process that tmux started in it.
    pub pid: u32,
    /// Columns and rows of its window.
    pub size: (u32, u32),
    /// It is the first one of a new window, which looks as the user's do until it is claimed.
    pub is_first_in_window: bool,
}

const CREATED_FORMAT: &str =
    "#{pane_id} #{window_id} #{session_id} #{pane_pid} #{window_width} #{window_height}";

impl TmuxServer {
    /// A session of 200 by 50 with one window, which stays although nobody is attached.
    /// [`Server::claim_and_record`] makes that window one of ours.
    ///
    /// # Errors
    /// `Invalid` for a name that is not plain or fewer than two words; `Failed` for a name that is taken. After
    /// `Timeout` and `Lost` it may exist.
    pub fn new_session(&mut self, name: &str, window: &str, argv: &[String]) -> Result<CreatedPane, Error> {
        let deadline = Deadline::for_action("make a session");
        let session = NewSession::new().detached().print().format(CREATED_FORMAT).not_update_env();
        let session = session.start_directory("/").session_name(validate::check_name(name)?);
        let session = session.window_name(validate::check_name(window)?).width(200).height(50).build();
        // In one go: a user may have this option on, and then any client that leaves takes the new session along.
        let script = CommandList::new(&with_program(session, argv)?).with_command(&set_session_option(
            name,
            "destroy-unattached",
            "off",
        ));
        self.create_in_new_window(&script, deadline)
    }

    /// A window behind the last one of the session. [`Server::claim_and_record`] makes it one of ours.
    ///
    /// # Errors
    /// As [`Server::new_session`], but `Failed` where the session is gone.
    pub fn new_window(
        &mut self,
        session: SessionId,
        window: &str,
        argv: &[String],
    ) -> Result<CreatedPane, Error> {
        let deadline = Deadline::for_action("make a window");
        let command = NewWindow::new().after().detached().print().format(CREATED_FORMAT).start_directory("/");
        let command =
            command.target_window(format!("{session}:{{end}}")).window_name(validate::check_name(window)?);
        self.create_in_new_window(&CommandList::new(&with_program(command.build(), argv)?), deadline)
    }

    /// One more pane in a window; a zoomed one stays zoomed. Where there is no space the panes are tiled first.
    ///
    /// # Errors
    /// `NoSpace` if that does not help or the window is zoomed; `Invalid` for fewer than two words; `Failed` where
    /// the window is gone. After `Timeout` and `Lost` the pane may exist.
    pub fn split(&mut self, window: WindowId, argv: &[String]) -> Result<CreatedPane, Error> {
        let deadline = Deadline::for_action("split a window");
        let split = split_commands(window, argv)?;
        match split_from_reply(self.run_once(&split, deadline)?, window, deadline) {
            Err(Error::NoSpace { .. }) => self.run_tile_and_split(window, split, deadline),
            result => result,
        }
    }

    /// As [`Server::split`], where a split has found no space just now: the panes are tiled first.
    ///
    /// # Errors
    /// As there.
    pub fn tile_then_split(&mut self, window: WindowId, argv: &[String]) -> Result<CreatedPane, Error> {
        self.run_tile_and_split(window, split_commands(window, argv)?, Deadline::for_action("split a window"))
    }

    fn run_tile_and_split(
        &mut self,
        window: WindowId,
        split: CommandList,
        deadline: Deadline,
    ) -> Result<CreatedPane, Error> {
        let mut answers = self.run_all_once(&[tile_commands(window)?, split], deadline)?.into_iter();
        let mut answer = || answers.next().ok_or(deadline.disconnect_error());
        let tiled = answer()?.into_result(deadline.action());
        split_from_reply(answer()?, window, deadline).or_else(|error| tiled.and(Err(error)))
    }

    fn create_in_new_window(
        &mut self,
        script: &CommandList,
        deadline: Deadline,
    ) -> Result<CreatedPane, Error> {
        Ok(CreatedPane {
            is_first_in_window: true,
            ..created_from_reply(self.run_once(script, deadline)?, deadline)?
        })
    }

    /// Makes a window one of ours: its border, and that its layout is our affair.
    pub(crate) fn configure_window(&mut self, window: WindowId, deadline: Deadline) -> Result<(), Error> {
        self.run(&configure_window_commands(window), deadline)?.into_result(deadline.action())
    }
}

/// What the answer to [`split_script`] says.
pub(crate) fn split_from_reply(
    answer: CommandReply,
    window: WindowId,
    deadline: Deadline,
) -> Result<CreatedPane, Error> {
    match created_from_reply(answer, deadline) {
        Err(error) if error.is_no_space() => Err(Error::NoSpace { window }),
        result => result,
    }
}

fn created_from_reply(answer: CommandReply, deadline: Deadline) -> Result<CreatedPane, Error> {
    let answer = answer.text(deadline.action())?;
    parse_created(&answer).ok_or_else(|| Error::unexpected_reply(deadline.action(), &answer))
}

fn parse_created(answer: &str) -> Option<CreatedPane> {
    let mut words = answer.split(' ');
    let pane = words.next()?.parse().ok()?;
    let window = words.next()?.parse().ok()?;
    let session = words.next()?.parse().ok()?;
    let pid = words.next()?.parse().ok()?;
    let size = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(CreatedPane {
        pane,
        window,
        session,
        pid,
        size,
        is_first_in_window: false,
    })
}

fn with_program<'a>(mut command: TmuxCommand<'a>, argv: &'a [String]) -> Result<TmuxCommand<'a>, Error> {
    command.push_param("--");
    for word in validate::check_argv(argv)? {
        command.push_param(word);
    }
    Ok(command)
}

/// `-Z` keeps a zoom, but also makes one where there was none, so it is asked for only on a zoomed window.
pub(crate) fn split_commands(window: WindowId, argv: &[String]) -> Result<CommandList, Error> {
    let window = window.to_string();
    let plain = SplitWindow::new().detached().print().format(CREATED_FORMAT).start_directory("/");
    let plain = plain.target_pane(window.as_str());
    let zoomed = CommandList::new(&with_program(plain.clone().zoom().build(), argv)?);
    let plain = CommandList::new(&with_program(plain.build(), argv)?);
    if_else(&window, "#{window_zoomed_flag}", &zoomed, &plain)
}

/// Options of our window alone: the border, and whatever a user's settings could do to a pane of ours: keep it
/// after its end, rename it, type into all of them at once.
pub(crate) fn configure_window_commands(window: WindowId) -> CommandList {
    let set = |name: &'static str, value: &'static str| {
        SetOption::new().window().target_pane(window.to_string()).option(name).value(value).build()
    };
    CommandList::new(&set("pane-border-status", "top"))
        .with_command(&set("pane-border-format", BORDER_FORMAT))
        .with_command(&set("remain-on-exit", "off"))
        .with_command(&set("automatic-rename", "off"))
        .with_command(&set("allow-rename", "off"))
        .with_command(&set("synchronize-panes", "off"))
        .with_command(&set("@teamd_window", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_reply_is_rejected() {
        let made = parse_created("%5 @3 $0 4711 80 24").unwrap();
        assert_eq!((made.pid, made.size), (4711, (80, 24)));
        for answer in ["", "%5", "%5 @3 $0 1", "%5 @3 $0 x 8 2", "%5 @3 $0 1 8 2 3", "@3 %5 $0 1 8 2"] {
            assert!(parse_created(answer).is_none(), "{answer:?}");
        }
    }
}
