//! Turns SIGTERM, SIGINT and SIGHUP into core events, and ignores SIGXFSZ.

use crate::core::core_event::CoreEvent;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

/// Turns SIGTERM, SIGINT and SIGHUP into events. A second signal ends the daemon at once.
pub(crate) fn watch_signals(events: &UnboundedSender<CoreEvent>) -> Result<(), ErrorReport> {
    // The daemon handles SIGXFSZ, so a write beyond the file size limit (`ulimit -f`) only returns
    // an error. Without a handler, the signal would kill the daemon.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
    let kinds = [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::hangup(), "SIGHUP"),
    ];
    // After the first signal the daemon waits until running jobs are done. A job may wait several
    // seconds for a file lock. A second signal ends the daemon without waiting.
    let has_received_signal = Arc::new(AtomicBool::new(false));
    for (kind, name) in kinds {
        let number = kind.as_raw_value();
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, has_received_signal.clone())
            .ok();
        let stream = signal(kind);
        let mut stream = stream.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot wait for {name}: {error}"))
        })?;
        let (events, has_received_signal) = (events.clone(), has_received_signal.clone());
        tokio::spawn(async move {
            if stream.recv().await.is_some() {
                has_received_signal.store(true, Ordering::Relaxed);
                events.send(CoreEvent::Signal(name)).ok();
            }
        });
    }
    Ok(())
}
