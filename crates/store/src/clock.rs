//! The wall clock that stamps messages, tasks and events.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time in ms since the epoch. 0 if the system clock is before the epoch.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since_epoch| since_epoch.as_millis() as u64)
}
