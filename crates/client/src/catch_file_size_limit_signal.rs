//! Catches the signal of the file size limit (`ulimit -f`), so that a write at the limit fails and
//! does not end the process.

/// Catches the signal SIGXFSZ. The kernel sends this signal when a write would make a file longer
/// than the limit of `ulimit -f`. By default the signal ends the process. With a handler, the write
/// fails instead. The signal is not simply ignored, because programs that this process starts would
/// then ignore it too. A handler is not inherited.
pub fn catch_sigxfsz() {
    let noticed = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed).ok();
}
