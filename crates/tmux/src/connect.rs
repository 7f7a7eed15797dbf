//! Getting a connection, and learning who is at its other end.
//!
//! A connection counts once tmux has answered over it with its epoch and version. What keeps a first connection from
//! being made is often gone a moment later, so it is tried thrice.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::address::TmuxEndpoint;
use crate::control_client::ServerStart;
use crate::control_connection::ControlConnection;
use crate::deadline::Deadline;
use crate::guarded_command::print_command;
use crate::server::NoticeSender;
use crate::{Error, ServerAddress, ServerEpoch, TmuxVersion, stale_client, subprocess};

/// Who answered.
pub(crate) struct ServerHandshake {
    pub(crate) epoch: ServerEpoch,
    pub(crate) version: TmuxVersion,
}

/// A server that is just ending takes connections and drops them, and nothing tells when it is done; and a name may
/// be left over from a process that had our id. Both are gone at the second or third try.
pub(crate) fn connect_with_retries(
    tmux: &TmuxEndpoint,
    herald: &NoticeSender,
    deadline: Deadline,
) -> Result<(ControlConnection, ServerHandshake), Error> {
    check_socket_directory(tmux)?;
    check_program_version(tmux, deadline)?;
    stale_client::wait_or_remove(tmux, deadline);
    for pause in [50, 400] {
        match try_connect(tmux, ServerStart::IfNeeded, herald, deadline) {
            Err(Error::Connect { cause, .. }) if is_transient(&cause) => {
                thread::park_timeout(Duration::from_millis(pause));
            }
            result => return result,
        }
    }
    try_connect(tmux, ServerStart::IfNeeded, herald, deadline)
}

/// One try.
pub(crate) fn try_connect(
    tmux: &TmuxEndpoint,
    start: ServerStart,
    herald: &NoticeSender,
    deadline: Deadline,
) -> Result<(ControlConnection, ServerHandshake), Error> {
    let mut control = ControlConnection::open(tmux, start, herald)?;
    let question = print_command(&format!("#{{version}} {}", ServerEpoch::FORMAT));
    match control.run(&[question], deadline) {
        Ok(mut replies) => {
            let reply = replies.pop().expect("one for one");
            let hello = parse_handshake(&reply.text(deadline.action())?, deadline.action())?;
            Ok((control, hello))
        }
        Err(Error::Disconnected { .. }) => Err(connect_error(tmux, control.close_reason())),
        Err(other) => Err(other),
    }
}

/// Refuses a program that is too old before it is asked for what it does not know.
fn check_program_version(tmux: &TmuxEndpoint, deadline: Deadline) -> Result<(), Error> {
    let mut command = tmux.command();
    command.arg("-V");
    let output = subprocess::run_process(tmux, command, deadline)?;
    match output.error {
        Some(cause) => Err(Error::Rejected { action: "ask tmux for its version", cause }),
        None => TmuxVersion::parse_supported(&String::from_utf8_lossy(&output.stdout)).map(drop),
    }
}

/// In a directory that does not exist tmux 3.3a crashes instead of saying so.
fn check_socket_directory(tmux: &TmuxEndpoint) -> Result<(), Error> {
    match &tmux.address {
        ServerAddress::Path(path) if path.parent().is_some_and(is_missing_directory) => {
            Err(connect_error(tmux, "its directory does not exist".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The parent of a bare file name is empty, and means here.
fn is_missing_directory(dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && !dir.is_dir()
}

fn is_transient(cause: &str) -> bool {
    ["server exited", "lost server", "closed the connection", "duplicate session"]
        .iter()
        .any(|words| cause.contains(words))
}

fn parse_handshake(text: &str, verb: &'static str) -> Result<ServerHandshake, Error> {
    let (version, epoch) = text.split_once(' ').ok_or_else(|| Error::unexpected_reply(verb, text))?;
    Ok(ServerHandshake { epoch: epoch.parse()?, version: TmuxVersion::parse_supported(version)? })
}

pub(crate) fn connect_error(tmux: &TmuxEndpoint, cause: String) -> Error {
    Error::Connect { address: tmux.address.to_string(), cause }
}
