//! The tests may run below nohup or in the background of a shell, and then ignore signals. The
//! programs under test inherit that, but must not: tests check what signals do to these programs.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use std::process::Command;
use std::sync::{Arc, Once};

/// Lets programs that this process starts accept the signals that this process ignores.
pub(crate) fn accept_signals_in_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (signal, name) in [(SIGHUP, "HUP"), (SIGINT, "INT"), (SIGQUIT, "QUIT")] {
            if is_ignored(name) {
                // This process still ignores the signal. A new program does not, because a handler
                // is not inherited.
                signal_hook::flag::register(signal, Arc::default()).expect("a handler can be set");
            }
        }
    });
}

/// Whether this process ignores the signal. A shell inherits that, and can't change it.
fn is_ignored(name: &str) -> bool {
    let script = format!("ulimit -c 0; kill -{name} $$; exit 0");
    Command::new("sh").args(["-c", &script]).status().expect("sh starts").success()
}
