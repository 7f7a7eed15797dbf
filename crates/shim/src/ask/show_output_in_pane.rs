//! `teamd-shim show-ask SOCKET`, the process of the pane that `teamctl ask --pane` opens.
//!
//! It prints what arrives on the socket. The socket is closed when the shim of the ask exits, also if it
//! was killed. Then this process exits, and tmux closes the pane.

use protocol::error_kind_and_report::ErrorReport;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// Prints what arrives on the socket, until it is closed.
///
/// # Errors
///
/// `teamctl ask` is gone, so nothing listens on the socket.
pub(crate) fn run(socket: &Path) -> Result<ExitCode, ErrorReport> {
    let connected = UnixStream::connect(socket);
    let mut stream = connected.map_err(|error| ErrorReport::from_io("open", socket, &error))?;
    // A failed read or write also means the end.
    std::io::copy(&mut stream, &mut std::io::stdout().lock()).ok();
    Ok(ExitCode::SUCCESS)
}
