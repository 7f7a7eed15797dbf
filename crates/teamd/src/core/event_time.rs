//! The time of an event.

/// The time of an event, on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds on the monotonic clock, which stands still while the machine sleeps. Deadlines
    /// are on this clock.
    pub(crate) mono: u64,
    /// Milliseconds since the epoch. Saved and displayed times are on this clock.
    pub(crate) wall: u64,
}
