//! Catches the signal of the file size limit (`ulimit -f`), so that a write at the limit fails and
//! does not end the process.

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error. By default the kernel
/// sends the signal SIGXFSZ at such a write, and the signal ends the process.
///
/// The signal is caught and not ignored, because programs that this process starts would inherit an
/// ignored signal. They do not inherit a handler.
pub fn catch_sigxfsz() {
    let noticed = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed).ok();
}
