//! Catches the signals that end a process when its terminal is closed, or when a person types
//! Ctrl-C.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;

/// Keeps SIGHUP, SIGINT, SIGQUIT and SIGTERM from ending this process. So this process can clean up
/// after a child that the same signal ends. A child started later is not protected: it starts with
/// the default actions of these signals.
pub fn catch_terminal_signals() {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // If the handler cannot be installed, the signal ends this process as usual.
        signal_hook::flag::register(signal, Arc::default()).ok();
    }
}
