//! Whether the file watcher delivers events, and how often the files are rescanned.

/// Whether the watcher delivers file events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatcherState {
    /// The watcher has not reported the probe file yet. The daemon creates this file to test the
    /// watcher. Until the report, frequent rescans replace file events.
    Unproven,
    /// A directory can't be watched. Frequent rescans replace file events, and the next rescan
    /// tries to watch the directory again.
    Failed,
    /// File events arrive. Rescans are rare, and find changes for which no event came.
    Active,
}

impl WatcherState {
    /// The time between two rescans, in milliseconds.
    pub(crate) fn rescan_interval_ms(self) -> u64 {
        match self {
            WatcherState::Unproven | WatcherState::Failed => 2_000,
            WatcherState::Active => 30_000,
        }
    }

    /// The word for this state in `status`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WatcherState::Unproven | WatcherState::Failed => "rescan",
            WatcherState::Active => "events",
        }
    }
}
