//! The one place where a test waits for no event: something is to come at a moment of chance, or to last so long.

use std::time::Duration;

/// Waits so long: for a kill somewhere in what goes on, or with somebody stopped. Never for something to be done.
#[allow(clippy::disallowed_methods, reason = "there is no event to wait for")]
pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// A moment within some call by chance: the short ones, in which most of a call lies, are as likely as all the longer.
pub fn random_delay(rng: &mut fastrand::Rng) -> Duration {
    let most = 1 << rng.u32(8..15);
    Duration::from_micros(rng.u64(0..most))
}
