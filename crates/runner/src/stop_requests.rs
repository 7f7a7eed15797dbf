//! Ctrl-C: once asks the team to stop, twice ends it. The handlers only count and wake.

use client::directory_watcher::WatchNotifier;
use protocol::error::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often somebody asked us to stop.
#[derive(Debug)]
pub(crate) struct StopRequests(Arc<AtomicUsize>);

impl StopRequests {
    /// Catches SIGINT and SIGTERM from now on, and wakes whoever waits.
    pub(crate) fn install(notifier: WatchNotifier) -> Result<StopRequests, ErrorReport> {
        let cannot = |error: std::io::Error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}"))
        };
        let (mut pipe, write) = UnixStream::pair().map_err(cannot)?;
        for signal in [SIGINT, SIGTERM] {
            let write = write.try_clone().map_err(cannot)?;
            signal_hook::low_level::pipe::register(signal, write).map_err(cannot)?;
        }
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        std::thread::spawn(move || {
            // One byte for each; the writing ends live as long as the process.
            let mut byte = [0];
            while matches!(pipe.read(&mut byte), Ok(1)) {
                counted.fetch_add(1, Ordering::Release);
                notifier.notify();
            }
        });
        Ok(StopRequests(count))
    }

    /// So far.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}
