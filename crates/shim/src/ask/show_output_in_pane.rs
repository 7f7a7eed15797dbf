//! `teamd-shim show-ask SOCKET`, the process of the pane that `teamctl ask --pane` opens.
//!
//! This process connects to SOCKET and prints what arrives: the standard error of the ask's shim.
//! When that shim exits or is killed, the connection closes. Then this process exits, and tmux
//! closes the pane.

use protocol::error_kind_and_report::ErrorReport;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// Connects to the socket and prints what arrives, until the connection is closed.
///
/// # Errors
///
/// If nothing listens on the socket, because `teamctl ask` has exited.
pub(crate) fn run(socket: &Path) -> Result<ExitCode, ErrorReport> {
    let connected = UnixStream::connect(socket);
    let mut stream = connected.map_err(|error| ErrorReport::from_io("open", socket, &error))?;
    // A failed read or write also means the end.
    std::io::copy(&mut stream, &mut std::io::stdout().lock()).ok();
    Ok(ExitCode::SUCCESS)
}
