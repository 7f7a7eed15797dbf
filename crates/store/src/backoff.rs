//! Backoff: waits between the attempts to take a lock or to read a half-written file. No other
//! module of this crate sleeps. The waits end at a deadline. Each wait is twice as long as the one
//! before, up to a maximum. Each wait is also shortened by a random part, so that several processes
//! do not retry at the same time.

use std::time::{Duration, Instant};
use uuid::Uuid;

/// A wait with a deadline, in growing steps.
#[derive(Debug)]
pub(crate) struct Backoff {
    deadline: Instant,
    step: Duration,
    max_step: Duration,
}

impl Backoff {
    /// Creates a wait of `total`, in steps from `first_step` to `max_step`.
    pub(crate) fn new(total: Duration, first_step: Duration, max_step: Duration) -> Backoff {
        Backoff { deadline: Instant::now() + total, step: first_step, max_step }
    }

    /// Sleeps for the next step. Returns false without sleeping if the deadline has passed.
    pub(crate) fn wait(&mut self) -> bool {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return false;
        }
        sleep(self.step.mul_f64(jitter()).min(remaining));
        self.step = (self.step * 2).min(self.max_step);
        true
    }
}

/// A random factor from 0.5 to 1.
fn jitter() -> f64 {
    let random = Uuid::new_v4().as_u128() as u16;
    0.5 + f64::from(random) / f64::from(u16::MAX) / 2.0
}

#[allow(clippy::disallowed_methods, reason = "no event reports the end of another program's lock or write")]
fn sleep(step: Duration) {
    std::thread::sleep(step);
}
