//! The time of an event.

/// The time, as the step function is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds on a clock that never jumps, and stands still while the machine sleeps: for deadlines.
    pub(crate) mono: u64,
    /// Milliseconds since the epoch: for what is written.
    pub(crate) wall: u64,
}
