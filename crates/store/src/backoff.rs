//! The one place that sleeps: between two looks at a lock or at a half-written file of somebody who sends no
//! event when done. Always up to a deadline; the steps double, shortened at random so that waiters spread.

use std::time::{Duration, Instant};
use uuid::Uuid;

/// A bounded wait in growing steps.
#[derive(Debug)]
pub(crate) struct Backoff {
    deadline: Instant,
    step: Duration,
    longest: Duration,
}

impl Backoff {
    /// Waits `limit` in all, in steps from `first` to `longest`.
    pub(crate) fn new(limit: Duration, first: Duration, longest: Duration) -> Backoff {
        Backoff { deadline: Instant::now() + limit, step: first, longest }
    }

    /// Takes the next step; false, and at once, when the time is up.
    pub(crate) fn wait(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        sleep(self.step.mul_f64(jitter()).min(left));
        self.step = (self.step * 2).min(self.longest);
        true
    }
}

/// Somewhere from a half to one.
fn jitter() -> f64 {
    let random = Uuid::new_v4().as_u128() as u16;
    0.5 + f64::from(random) / f64::from(u16::MAX) / 2.0
}

#[allow(clippy::disallowed_methods, reason = "nobody tells us when a foreign lock or write ends")]
fn sleep(step: Duration) {
    std::thread::sleep(step);
}
