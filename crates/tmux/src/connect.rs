//! Connects to a tmux server and reads its version and its epoch, which identifies this run of the
//! server. Makes up to three attempts, because some failures are transient: for example, while an
//! old server is exiting.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::control_client_process::ServerStart;
use crate::control_connection::ControlConnection;
use crate::deadline::Deadline;
use crate::if_shell::print_command;
use crate::report_disconnect_or_foreign_use::NoticeSender;
use crate::server_address_and_program::TmuxEndpoint;
use crate::{
    Error, ServerAddress, ServerEpoch, TmuxVersion, run_tmux_process, wait_for_stale_control_clients,
};

/// A usable connection, and what the server has reported about itself in its first reply.
pub(crate) struct OpenedConnection {
    pub(crate) connection: ControlConnection,
    pub(crate) epoch: ServerEpoch,
    pub(crate) version: TmuxVersion,
}

/// Connects to a tmux server, and starts a server if none is running. After a transient failure
/// this function waits 50 ms and tries again. After a second transient failure it waits 400 ms and
/// tries a last time.
///
/// There are two transient failures:
///
/// - The server is exiting. It still accepts connections, but closes them at once.
/// - The new session's name is taken. The name contains this process's id, and an earlier process
///   with the same id has left its session.
///
/// # Errors
///
/// `ProgramNotStarted`, `TooOld`, `Connect`, `Timeout`.
pub(crate) fn connect_with_retries(
    tmux: &TmuxEndpoint,
    notices: &NoticeSender,
    deadline: Deadline,
) -> Result<OpenedConnection, Error> {
    check_socket_directory(tmux)?;
    check_program_version(tmux, deadline)?;
    wait_for_stale_control_clients::wait_or_remove(tmux, deadline);
    for delay_ms in [50, 400] {
        match try_connect(tmux, ServerStart::IfNeeded, notices, deadline) {
            Err(Error::Connect { cause, .. }) if is_transient(&cause) => {
                thread::park_timeout(Duration::from_millis(delay_ms));
            }
            result => return result,
        }
    }
    try_connect(tmux, ServerStart::IfNeeded, notices, deadline)
}

/// Makes one attempt to connect to a tmux server. [`connect_with_retries`] makes several.
///
/// # Errors
///
/// `ProgramNotStarted`, `TooOld`, `Connect`, `Timeout`.
pub(crate) fn try_connect(
    tmux: &TmuxEndpoint,
    start: ServerStart,
    notices: &NoticeSender,
    deadline: Deadline,
) -> Result<OpenedConnection, Error> {
    let mut connection = ControlConnection::open(tmux, start, notices)?;
    let query = print_command(&format!("#{{version}} {}", ServerEpoch::FORMAT));
    match connection.run(&[query], deadline) {
        Ok(mut replies) => {
            let reply = replies.pop().expect("one reply per command list");
            let (version, epoch) = reply.parse(|text| {
                let (version, epoch) = text.split_once(' ')?;
                Some((version.to_owned(), epoch.to_owned()))
            })?;
            let (epoch, version) = (epoch.parse()?, TmuxVersion::parse_supported(&version)?);
            Ok(OpenedConnection { connection, epoch, version })
        }
        Err(Error::Disconnected { .. }) => Err(connect_error(tmux, connection.close_reason())),
        Err(other) => Err(other),
    }
}

/// Checks that the tmux program is not too old to know the options that this crate uses.
fn check_program_version(tmux: &TmuxEndpoint, deadline: Deadline) -> Result<(), Error> {
    let mut command = tmux.command();
    command.arg("-V");
    let output = run_tmux_process::run_process(tmux, command, deadline)?;
    match output.error {
        Some(cause) => Err(Error::Rejected { action: "ask tmux for its version", cause }),
        None => TmuxVersion::parse_supported(&String::from_utf8_lossy(&output.stdout)).map(drop),
    }
}

/// Checks that the directory of the socket exists. If it does not, tmux 3.3a crashes.
fn check_socket_directory(tmux: &TmuxEndpoint) -> Result<(), Error> {
    match &tmux.address {
        ServerAddress::Path(path) if path.parent().is_some_and(is_missing_directory) => {
            Err(connect_error(tmux, "the directory of the socket does not exist".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Whether `dir` is missing. An empty path is the current directory.
fn is_missing_directory(dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && !dir.is_dir()
}

/// Whether `cause`, a message of tmux, describes a transient failure.
fn is_transient(cause: &str) -> bool {
    ["server exited", "lost server", "closed the connection", "duplicate session"]
        .iter()
        .any(|message| cause.contains(message))
}

/// Returns the error for a failed connection to `tmux`. `cause` is a message of tmux.
pub(crate) fn connect_error(tmux: &TmuxEndpoint, cause: String) -> Error {
    Error::Connect { address: tmux.address.to_string(), cause }
}
