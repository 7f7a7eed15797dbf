//! `teamctl ask --pane`: a tmux pane beside the caller that shows what the program prints.
//!
//! The pane runs `teamd-shim show-ask SOCKET`. `show-ask` connects to a socket of `teamctl ask` and
//! prints what it receives. `teamctl ask` starts the ask's shim with this connection as standard
//! error, so the pane shows what the shim prints. When the shim ends, `show-ask` exits and tmux
//! closes the pane.

use crate::command_context::CommandContext;
use crate::output;
use client::select_tmux_server::tmux_output;
use client::tmux_pane_of_caller::{TmuxPaneOfCaller, tmux_pane_of_caller};
use protocol::control_socket::shim_subcommands;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::teamctl_ask_setup_and_record::AskRecord;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::StateDir;

/// How long the process in the new pane may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The caller's pane, and the socket on which the new pane is served.
pub(super) struct AskPaneOpener {
    caller: TmuxPaneOfCaller,
    runtime_dir: StateDir,
}

impl AskPaneOpener {
    /// Finds the pane of the caller.
    ///
    /// # Errors
    ///
    /// `Refused` if the caller is not in tmux.
    pub(super) fn find(context: &CommandContext) -> Result<AskPaneOpener, ErrorReport> {
        let not_in_tmux = || {
            let message = "cannot open a pane beside this one: this terminal is not in tmux";
            ErrorReport::new(ErrorKind::Refused, message)
                .with_help("type it in a pane of tmux, or leave out --pane")
        };
        let caller = tmux_pane_of_caller().ok_or_else(not_in_tmux)?;
        Ok(AskPaneOpener { caller, runtime_dir: StateDir::open(&context.directories()?.runtime_dir)? })
    }

    /// Opens the pane, and returns the connection to the process in the pane. The caller's pane
    /// stays selected.
    ///
    /// # Errors
    ///
    /// `Refused` if tmux opens no pane, `Timeout` if the process in the pane does not connect.
    pub(super) fn open(&self, shim: &Path, record: &AskRecord) -> Result<OwnedFd, ErrorReport> {
        let name = record.id.to_string();
        let socket = self.runtime_dir.path().join(&name);
        let io_error = |error: std::io::Error| ErrorReport::from_io("open", &socket, &error);
        let listener = UnixListener::bind(&socket).map_err(io_error)?;
        let connected = self.split(shim, &socket).and_then(|()| accept(listener));
        self.runtime_dir.remove(&name)?;
        let mut stream = connected?;
        let question = record.prompt.lines().next().unwrap_or_default();
        // An error means that the pane was closed meanwhile.
        writeln!(stream, "{name}: {}", output::sanitize(question)).ok();
        Ok(stream.into())
    }

    fn split(&self, shim: &Path, socket: &Path) -> Result<(), ErrorReport> {
        let server = ["-S".to_owned(), self.caller.socket.display().to_string()];
        let (shim, socket) = (shim.display().to_string(), socket.display().to_string());
        let split = ["split-window", "-d", "-h", "-P", "-F", "#{pane_id}", "-t", &self.caller.pane];
        let program = ["--", &shim, shim_subcommands::SHOW_ASK, &socket];
        let pane = tmux_output(&server, &[&split[..], &program].concat()).map_err(|error| {
            ErrorReport::new(ErrorKind::Refused, format!("cannot open a pane beside this one: {error}"))
                .with_help("make the window larger, or leave out --pane")
        })?;
        // If the user has set `remain-on-exit`, tmux would keep the pane after its process has
        // exited.
        tmux_output(&server, &["set-option", "-p", "-t", pane.trim(), "remain-on-exit", "off"]).ok();
        Ok(())
    }
}

/// Waits until the process in the pane connects. No other process connects: the socket is in a
/// private directory, and only this pane gets its path.
fn accept(listener: UnixListener) -> Result<UnixStream, ErrorReport> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(listener.accept()).ok());
    match receiver.recv_timeout(CONNECT_TIMEOUT) {
        Ok(Ok((stream, _))) => Ok(stream),
        _ => Err(ErrorReport::new(ErrorKind::Timeout, "cannot show the output: the new pane has ended")
            .with_help("leave out --pane")),
    }
}
