//! Counts the SIGINT and SIGTERM signals during a run. After the first signal the team is asked to
//! stop, and after the second one its members are killed.

use client::directory_watcher::WatchNotifier;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many SIGINT and SIGTERM signals have arrived.
#[derive(Debug)]
pub(crate) struct StopRequests(Arc<AtomicUsize>);

impl StopRequests {
    /// Catches SIGINT and SIGTERM from now on. Each signal reaches the run through `notifier`.
    pub(crate) fn install(notifier: WatchNotifier) -> Result<StopRequests, ErrorReport> {
        let signal_error = |error: std::io::Error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}"))
        };
        let (mut pipe, write) = UnixStream::pair().map_err(signal_error)?;
        for signal in [SIGINT, SIGTERM] {
            let write = write.try_clone().map_err(signal_error)?;
            signal_hook::low_level::pipe::register(signal, write).map_err(signal_error)?;
        }
        let count = Arc::new(AtomicUsize::new(0));
        let thread_count = count.clone();
        std::thread::spawn(move || {
            // The signal handlers write one byte per signal. They keep their ends of the pipe open.
            let mut byte = [0];
            while matches!(pipe.read(&mut byte), Ok(1)) {
                thread_count.fetch_add(1, Ordering::Release);
                notifier.notify();
            }
        });
        Ok(StopRequests(count))
    }

    /// How many signals have arrived so far.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}
