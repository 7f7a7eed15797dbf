//! The wall clock, as messages, tasks and events are stamped with it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ms since the epoch; 0 where the clock is before it.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
