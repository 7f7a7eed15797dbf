//! Creates panes: in a new session, in a new window, or by splitting a window.
//!
//! A new pane is never selected. It runs an argument vector, not a shell command. Its working
//! directory is always `/`, because tmux would expand formats in other paths. tmux replies with the
//! id of the pane even if the program is missing, so only a message of the program proves that it
//! runs.

use tmux_interface::{NewSession, NewWindow, SetOption, SplitWindow, TmuxCommand};

use crate::apply_layout::tile_commands;
use crate::border_label::BORDER_FORMAT;
use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::control_client_process::set_session_option;
use crate::if_shell::if_else;
use crate::run_commands_of_one_call::{OnDisconnect, TmuxCall};
use crate::{Error, InvalidArgument, PaneId, SessionId, TmuxServer, WindowId, validate_names_and_commands};

/// A new pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedPane {
    /// The id of the pane.
    pub pane: PaneId,
    /// The window of the pane.
    pub window: WindowId,
    /// The session of the window.
    pub session: SessionId,
    /// Where people find the window: `SESSION:INDEX`.
    pub location: String,
    /// The id of the process that tmux started in the pane.
    pub pid: u32,
    /// Width of the window, in columns.
    pub width: u32,
    /// Height of the window, in lines.
    pub height: u32,
    /// Whether the pane is the first one of a new window. Such a window has the user's settings
    /// until [`TmuxServer::tag_and_pipe`] overrides some of them.
    pub is_first_in_window: bool,
}

/// The format of a new pane. [`parse_created`] reads it.
pub(crate) const CREATED_FORMAT: &str = "#{pane_id} #{window_id} #{session_id} #{pane_pid} #{window_width} #{window_height} #{session_name}:#{window_index}";

impl TmuxServer {
    /// Creates a session with one window of 200 columns and 50 lines. The session continues to
    /// exist when no client is attached to it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a name or `argv` is not valid; `Rejected` if a session of this name
    /// exists. After `Timeout` and `Disconnected` the session may exist.
    pub fn new_session(&mut self, name: &str, window: &str, argv: &[String]) -> Result<CreatedPane, Error> {
        let session = NewSession::new().detached().print().format(CREATED_FORMAT).not_update_env();
        let session =
            session.start_directory("/").session_name(validate_names_and_commands::check_name(name)?);
        let session = session
            .window_name(validate_names_and_commands::check_name(window)?)
            .width(200)
            .height(50)
            .build();
        // A user may have switched on `destroy-unattached`, with which tmux destroys a session when
        // its last client detaches. So this option is switched off for the new session.
        let commands = CommandList::new(&with_program(session, argv)?).with_command(&set_session_option(
            name,
            "destroy-unattached",
            "off",
        ));
        self.call("create a session").create_in_new_window(&commands)
    }

    /// Creates a window after the last window of the session.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::new_session`]; `Rejected` also if the session does not exist.
    pub fn new_window(
        &mut self,
        session: SessionId,
        window: &str,
        argv: &[String],
    ) -> Result<CreatedPane, Error> {
        let command = NewWindow::new().after().detached().print().format(CREATED_FORMAT).start_directory("/");
        let command = command
            .target_window(format!("{session}:{{end}}"))
            .window_name(validate_names_and_commands::check_name(window)?);
        let command = CommandList::new(&with_program(command.build(), argv)?);
        self.call("create a window").create_in_new_window(&command)
    }

    /// Creates one more pane in a window by splitting the window. If there is no room, tmux first
    /// tiles the panes (gives them equal sizes) and then splits again. A zoomed window stays
    /// zoomed.
    ///
    /// # Errors
    ///
    /// `NoSpace` if there is still no room, or if the window cannot be tiled because it is zoomed.
    /// `InvalidArgument` if `argv` is not valid. `Rejected` if the window does not exist. After
    /// `Timeout` and `Disconnected` the pane may exist.
    pub fn split(&mut self, window: WindowId, argv: &[String]) -> Result<CreatedPane, Error> {
        let split = split_commands(window, argv)?;
        let mut call = self.call("split a window");
        match split_from_reply(call.run_once(&split)?, window) {
            Err(Error::NoSpace { .. }) => call.tile_and_split(window, split),
            result => result,
        }
    }

    /// Creates one more pane in a window, like [`TmuxServer::split`], but tiles the panes before it
    /// splits. Called when [`TmuxServer::split`] has just returned `NoSpace` for this window.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::split`].
    pub fn tile_then_split(&mut self, window: WindowId, argv: &[String]) -> Result<CreatedPane, Error> {
        let split = split_commands(window, argv)?;
        self.call("split a window").tile_and_split(window, split)
    }
}

impl TmuxCall<'_> {
    /// Tiles the panes and splits the window, in one round trip.
    fn tile_and_split(&mut self, window: WindowId, split: CommandList) -> Result<CreatedPane, Error> {
        let replies = self.run_all(&[tile_commands(window)?, split], OnDisconnect::Fail)?;
        let [tiled, split] = replies.try_into().expect("one reply per command list");
        split_from_reply(split, window).or_else(|error| tiled.into_result().and(Err(error)))
    }

    /// Runs commands that create a window, and parses their reply.
    fn create_in_new_window(&mut self, commands: &CommandList) -> Result<CreatedPane, Error> {
        let created = self.run_once(commands)?.parse(parse_created)?;
        Ok(CreatedPane { is_first_in_window: true, ..created })
    }

    /// Sets the options of a teamd window: see [`configure_window_commands`].
    pub(crate) fn configure_window(&mut self, window: WindowId) -> Result<(), Error> {
        self.run(&configure_window_commands(window))?.into_result()
    }
}

/// Parses the reply to a command that splits a pane. `window` is the window that was split.
///
/// # Errors
/// `NoSpace` if the window has no room for another pane. `Rejected` if tmux refused the split for
/// another reason. `UnexpectedReply` if the reply does not parse.
pub(crate) fn split_from_reply(reply: CommandReply, window: WindowId) -> Result<CreatedPane, Error> {
    match reply.parse(parse_created) {
        Err(error) if error.is_no_space() => Err(Error::NoSpace { window }),
        result => result,
    }
}

/// Parses a line in [`CREATED_FORMAT`].
fn parse_created(reply: &str) -> Option<CreatedPane> {
    // The name of a session may have spaces.
    let mut fields = reply.splitn(7, ' ');
    let pane = fields.next()?.parse().ok()?;
    let window = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let pid = fields.next()?.parse().ok()?;
    let width = fields.next()?.parse().ok()?;
    let height = fields.next()?.parse().ok()?;
    let location = fields.next()?.to_owned();
    Some(CreatedPane { pane, window, session, location, pid, width, height, is_first_in_window: false })
}

/// Appends `argv` to a command as the program of the new pane.
pub(crate) fn with_program<'a>(
    mut command: TmuxCommand<'a>,
    argv: &'a [String],
) -> Result<TmuxCommand<'a>, InvalidArgument> {
    command.push_param("--");
    for word in validate_names_and_commands::check_argv(argv)? {
        command.push_param(word);
    }
    Ok(command)
}

/// Returns the commands that split a window. They split the pane at the bottom right, which is the
/// last one in all layouts, so the panes are in the order of their creation. The flag `-Z` keeps a
/// zoomed window zoomed. It is used only for a zoomed window, because it would zoom any other one.
pub(crate) fn split_commands(window: WindowId, argv: &[String]) -> Result<CommandList, InvalidArgument> {
    let window = window.to_string();
    let plain = SplitWindow::new().detached().print().format(CREATED_FORMAT).start_directory("/");
    let plain = plain.target_pane(format!("{window}.{{bottom-right}}"));
    let zoomed = CommandList::new(&with_program(plain.clone().zoom().build(), argv)?);
    let plain = CommandList::new(&with_program(plain.build(), argv)?);
    if_else(&window, "#{window_zoomed_flag}", &zoomed, &plain)
}

/// Returns the commands that set up a new window for panes of teamd (a teamd window).
///
/// The commands set options of this window only. Two options show the labels on the pane borders.
/// The option `@teamd_window` marks the window as created by teamd. The other options override
/// settings of the user with which tmux would keep the pane of an exited process, rename the
/// window, or send typed keys to all panes at once.
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
        let created = parse_created("%5 @3 $0 4711 80 24 my team:2").unwrap();
        assert_eq!((created.pid, created.width, created.height), (4711, 80, 24));
        assert_eq!(created.location, "my team:2");
        for reply in ["", "%5", "%5 @3 $0 1", "%5 @3 $0 x 8 2 a:1", "%5 @3 $0 1 8 2", "@3 %5 $0 1 8 2 a:1"] {
            assert!(parse_created(reply).is_none(), "{reply:?}");
        }
    }
}
