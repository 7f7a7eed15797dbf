//! Signals as readable bytes: one pipe that poll(2) watches, and a flag for each that must be told apart.
//!
//! Caught, not ignored: what is caught falls back to its default in the agent, what is ignored stays ignored.

use protocol::error::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What has arrived.
#[derive(Debug)]
pub(crate) struct ShimSignals {
    pipe: UnixStream,
    hangup: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
    interrupt: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
}

impl ShimSignals {
    /// Catches them from now on.
    pub(crate) fn install() -> Result<ShimSignals, ErrorReport> {
        Self::register()
            .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}")))
    }

    fn register() -> std::io::Result<ShimSignals> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let hangup = Arc::new(AtomicBool::new(false));
        let [end, interrupt, resized] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        // The flags first: whoever reads the byte finds the flag set.
        signal_hook::flag::register(SIGHUP, hangup.clone())?;
        signal_hook::flag::register(SIGTERM, end.clone())?;
        signal_hook::flag::register(SIGINT, interrupt.clone())?;
        signal_hook::flag::register(SIGWINCH, resized.clone())?;
        for signal in [SIGCHLD, SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGTSTP, SIGWINCH] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(ShimSignals { pipe, hangup, terminate: end, interrupt, resized })
    }

    /// Our terminal is gone.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.hangup.load(Ordering::Acquire)
    }

    /// SIGTERM came.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminate.load(Ordering::Acquire)
    }

    /// Whether SIGINT came since the last question: Ctrl-C in our pane.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.interrupt.swap(false, Ordering::AcqRel)
    }

    /// Whether our terminal has another size since the last question.
    pub(crate) fn take_resize(&self) -> bool {
        self.resized.swap(false, Ordering::AcqRel)
    }

    /// Empties the pipe; the flags stay.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.pipe).read(&mut bytes), Ok(read) if read > 0) {}
    }

    /// For poll(2).
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
