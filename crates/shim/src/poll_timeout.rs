//! Timeouts of poll(2).

use nix::poll::PollTimeout;
use std::time::Instant;

/// The time until `deadline` as a timeout for poll(2). It is rounded up to whole milliseconds, so
/// that poll does not return before the deadline. Zero if the deadline has passed.
pub(crate) fn from_deadline(deadline: Instant) -> PollTimeout {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let millis = if remaining.is_zero() { 0 } else { remaining.as_millis() + 1 };
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}
