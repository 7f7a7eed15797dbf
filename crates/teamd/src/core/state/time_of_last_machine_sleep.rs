//! When the machine last woke from sleep. The monotonic clock stands still during sleep and the
//! wall clock does not, so a comparison of the two shows a sleep.

use crate::core::event_time::Now;

/// The machine has slept if, between two events, the wall clock advances by this much more than the
/// monotonic clock, in milliseconds. A smaller difference is an ordinary adjustment of the wall
/// clock.
const MAX_CLOCK_ADJUSTMENT: u64 = 1_000;

/// The clocks at the last event, and the last wake-up.
#[derive(Debug, Default)]
pub(crate) struct SleepClock {
    latest: Option<Now>,
    awake_since: u64,
}

impl SleepClock {
    /// Compares the time of an event with that of the last event. Returns whether the machine has
    /// slept between them. A wall clock that was set forward counts as sleep, too.
    pub(crate) fn observe(&mut self, now: Now) -> bool {
        let has_slept = |before: Now| {
            let passed = now.mono.saturating_sub(before.mono);
            now.wall.saturating_sub(before.wall) > passed.saturating_add(MAX_CLOCK_ADJUSTMENT)
        };
        let slept = self.latest.replace(now).is_some_and(has_slept);
        self.awake_since = if slept { now.wall } else { self.awake_since.min(now.wall) };
        slept
    }

    /// When the machine last woke from sleep, in milliseconds since the epoch. 0 if the machine has
    /// not slept since the daemon started.
    pub(crate) fn awake_since(&self) -> u64 {
        self.awake_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_without_monotonic_time_counts_as_sleep() {
        let mut clock = SleepClock::default();
        let mut awake_since_at = |mono, wall| {
            clock.observe(Now { mono, wall });
            clock.awake_since()
        };
        assert_eq!(awake_since_at(0, 1_000_000), 0);
        assert_eq!(awake_since_at(30_000, 1_030_000), 0);
        assert_eq!(awake_since_at(60_000, 1_061_000), 0, "a small correction of the clock is not a sleep");
        assert_eq!(awake_since_at(60_100, 9_000_000), 9_000_000);
        assert_eq!(awake_since_at(90_000, 9_029_900), 9_000_000);
        assert_eq!(
            awake_since_at(90_100, 2_000_000),
            2_000_000,
            "the time is not in the future after the clock was set back"
        );
    }
}
