//! When the machine woke last, found by comparing the monotonic clock, which stands still during
//! sleep, with the wall clock.

use crate::core::event_time::Now;

/// Smaller differences of the clocks count as an adjustment, in milliseconds.
const MAX_CLOCK_ADJUSTMENT: u64 = 1_000;

/// The clocks at the last event, and the last wake-up.
#[derive(Debug, Default)]
pub(crate) struct SleepClock {
    latest: Option<Now>,
    since: u64,
}

impl SleepClock {
    /// Observes the time of an event. If the wall clock has advanced more than the monotonic clock,
    /// the machine has slept or its clock was set.
    pub(crate) fn observe(&mut self, now: Now) {
        let has_slept = |before: Now| {
            let passed = now.mono.saturating_sub(before.mono);
            now.wall.saturating_sub(before.wall) > passed.saturating_add(MAX_CLOCK_ADJUSTMENT)
        };
        let slept = self.latest.replace(now).is_some_and(has_slept);
        self.since = if slept { now.wall } else { self.since.min(now.wall) };
    }

    /// When the machine woke, in milliseconds since the epoch. 0: no sleep since the start of the
    /// daemon.
    pub(crate) fn awake_since(&self) -> u64 {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_what_the_wall_alone_has_seen() {
        let mut awake = SleepClock::default();
        let mut at = |mono, wall| {
            awake.observe(Now { mono, wall });
            awake.awake_since()
        };
        assert_eq!(at(0, 1_000_000), 0);
        assert_eq!(at(30_000, 1_030_000), 0);
        assert_eq!(at(60_000, 1_061_000), 0, "a clock that was set right");
        assert_eq!(at(60_100, 9_000_000), 9_000_000);
        assert_eq!(at(90_000, 9_029_900), 9_000_000);
        assert_eq!(at(90_100, 2_000_000), 2_000_000, "nothing is since a time that is yet to come");
    }
}
