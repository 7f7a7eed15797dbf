//! Turns signals of the operating system into events.

use crate::ui_events_and_effects::UiEvent;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Sender;

/// Starts the thread that turns signals into events. Called before the terminal is taken.
pub(crate) fn catch_signals(sender: &Sender<UiEvent>) -> Result<(), ErrorReport> {
    let signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT]);
    let mut signals = signals
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}")))?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGTSTP => UiEvent::SuspendRequested,
                SIGCONT => UiEvent::Continued,
                other => UiEvent::Terminate(128 + u8::try_from(other).unwrap_or(0)),
            };
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}
