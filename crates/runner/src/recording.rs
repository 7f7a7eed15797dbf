//! Whether the team of a run is recorded.

/// Whether the daemon records the team of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// The team has no record.
    Off,
    /// The daemon records the team from its creation.
    On,
}
