//! Timeouts of poll(2).

use nix::poll::PollTimeout;
use std::time::Instant;

/// The time until `deadline`, rounded up to whole milliseconds, so that a caller that waits for the
/// deadline does not wake too early. Zero if the deadline has passed.
pub(crate) fn until(deadline: Instant) -> PollTimeout {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let millis = if remaining.is_zero() { 0 } else { remaining.as_millis() + 1 };
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}
