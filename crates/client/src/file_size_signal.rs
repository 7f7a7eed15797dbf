//! What happens where a file must not grow further.

/// Where no file may grow further (`ulimit -f`), a write shall fail, and not end us in the middle of something. What is
/// handled, unlike what is ignored, is as usual again for the programs that we start.
pub fn catch_sigxfsz() {
    let noticed = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed).ok();
}
