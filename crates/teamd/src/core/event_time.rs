//! The time of an event.

/// The time of an event, on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds on the monotonic clock, which stands still while the machine sleeps. Used for
    /// deadlines.
    pub(crate) mono: u64,
    /// Milliseconds since the epoch. Used for what is saved and shown.
    pub(crate) wall: u64,
}
