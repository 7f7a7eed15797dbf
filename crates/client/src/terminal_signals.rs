//! Catches the signals that end a process when its terminal is closed, or when a person types Ctrl-C.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;

/// Lets this process survive the signals, so that it can clean up after a child that the signals
/// end. A child is not protected: it starts with the default actions.
pub fn catch_terminal_signals() {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // Without the handler, the signal ends this process as usual.
        signal_hook::flag::register(signal, Arc::default()).ok();
    }
}
