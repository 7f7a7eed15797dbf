//! Fixed and random delays. Everywhere else, tests wait for events.

use std::time::Duration;

/// Sleeps. Tests use this to act at a random moment or to keep a process stopped for a time. They
/// never use it to wait for a result.
#[allow(clippy::disallowed_methods, reason = "there is no event to wait for")]
pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// A random delay of less than 16.4 ms, to interrupt a call at a random point. The upper limit is
/// random too, so that short delays, in which most of a call runs, are as likely as long ones.
pub fn random_delay(rng: &mut fastrand::Rng) -> Duration {
    let limit = 1 << rng.u32(8..15);
    Duration::from_micros(rng.u64(0..limit))
}
