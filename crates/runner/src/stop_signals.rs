//! Counts the SIGINT and SIGTERM signals during a run. After the first signal the team is asked to
//! stop, and after the second one its members are killed.

use client::catch_terminating_signals::call_on_signals;
use client::directory_watcher::WatchNotifier;
use protocol::error_kind_and_report::ErrorReport;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many SIGINT and SIGTERM signals have arrived.
#[derive(Debug)]
pub(crate) struct StopRequests(Arc<AtomicUsize>);

impl StopRequests {
    /// Catches SIGINT and SIGTERM from now on. Each signal reaches the run through `notifier`.
    pub(crate) fn install(notifier: WatchNotifier) -> Result<StopRequests, ErrorReport> {
        let count = Arc::new(AtomicUsize::new(0));
        let thread_count = count.clone();
        call_on_signals(&[SIGINT, SIGTERM], move || {
            thread_count.fetch_add(1, Ordering::Release);
            notifier.notify();
        })?;
        Ok(StopRequests(count))
    }

    /// How many signals have arrived so far.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}
