//! Catches the signals that end a process when its terminal is closed, or when a person types
//! Ctrl-C.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// From now on, calls `action` on a separate thread for each signal in `signals` that arrives.
/// These signals no longer end this process. A signal that this process ignores stays ignored, for
/// example SIGHUP under `nohup`.
///
/// # Errors
///
/// `Internal` if the signals cannot be caught.
pub fn call_on_signals(
    signals: &[i32],
    mut action: impl FnMut() + Send + 'static,
) -> Result<(), ErrorReport> {
    let signal_error = |error: std::io::Error| {
        ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}"))
    };
    let ignored = platform::system().ignored_signals();
    let (mut pipe, write) = UnixStream::pair().map_err(signal_error)?;
    for signal in signals.iter().filter(|signal| !ignored.contains(signal)) {
        let write = write.try_clone().map_err(signal_error)?;
        signal_hook::low_level::pipe::register(*signal, write).map_err(signal_error)?;
    }
    std::thread::spawn(move || {
        // `signal_hook` writes one byte to the other end of `pipe` for each signal. It never closes
        // that end, so this loop runs until the process exits.
        while matches!(pipe.read(&mut [0]), Ok(1)) {
            action();
        }
    });
    Ok(())
}

/// Keeps SIGHUP, SIGINT, SIGQUIT and SIGTERM from ending this process. Children of this process do
/// not inherit this protection. So Ctrl-C ends a child, and this process can then clean up.
pub fn catch_terminal_signals() {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // If the handler cannot be installed, the signal ends this process as usual.
        signal_hook::flag::register(signal, Arc::default()).ok();
    }
}
