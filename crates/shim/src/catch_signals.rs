//! Catches signals. All signals write a byte into the same pipe, which wakes poll(2). SIGHUP,
//! SIGTERM, SIGINT and SIGWINCH also set a flag: there is one flag for each of them.
//!
//! SIGQUIT and SIGTSTP have no effect on the shim. The shim catches them instead of ignoring them,
//! because the agent would inherit an ignored signal and ignore it too. A caught signal gets its
//! default action in the agent.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that have arrived.
#[derive(Debug)]
pub(crate) struct ShimSignals {
    pipe: UnixStream,
    hangup: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
    interrupt: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
}

impl ShimSignals {
    /// Starts to catch the signals.
    pub(crate) fn install() -> Result<ShimSignals, ErrorReport> {
        Self::register()
            .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}")))
    }

    fn register() -> std::io::Result<ShimSignals> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let hangup = Arc::new(AtomicBool::new(false));
        let [terminate, interrupt, resized] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        // For each signal, the flag is registered before the pipe. So when a signal's byte can be
        // read from the pipe, the signal's flag is already set.
        signal_hook::flag::register(SIGHUP, hangup.clone())?;
        signal_hook::flag::register(SIGTERM, terminate.clone())?;
        signal_hook::flag::register(SIGINT, interrupt.clone())?;
        signal_hook::flag::register(SIGWINCH, resized.clone())?;
        for signal in [SIGCHLD, SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGTSTP, SIGWINCH] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(ShimSignals { pipe, hangup, terminate, interrupt, resized })
    }

    /// Whether the terminal is gone (SIGHUP).
    pub(crate) fn is_hung_up(&self) -> bool {
        self.hangup.load(Ordering::Acquire)
    }

    /// Whether SIGTERM has arrived.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminate.load(Ordering::Acquire)
    }

    /// Whether SIGINT has arrived since the last call, for example because of Ctrl-C in the pane.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.interrupt.swap(false, Ordering::AcqRel)
    }

    /// Whether the size of the terminal has changed since the last call.
    pub(crate) fn take_resize(&self) -> bool {
        self.resized.swap(false, Ordering::AcqRel)
    }

    /// Empties the pipe. The flags are not changed.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.pipe).read(&mut bytes), Ok(read) if read > 0) {}
    }

    /// The descriptor for poll(2).
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
