//! The state of one kind of scan: whether it runs, and whether another must follow.

/// The state of one kind of scan. Any number of changes during a scan cause one more scan.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanState {
    /// No scan runs.
    #[default]
    Idle,
    /// A scan runs.
    Running,
    /// A scan runs, and another must follow.
    RunningRescanNeeded,
}

impl ScanState {
    /// Starts a scan, or marks that another must follow. Returns whether the caller must start it.
    pub(crate) fn try_start(&mut self) -> bool {
        let due = *self == ScanState::Idle;
        *self = if due { ScanState::Running } else { ScanState::RunningRescanNeeded };
        due
    }

    /// Ends a scan. Returns whether another must follow.
    pub(crate) fn finish(&mut self) -> bool {
        std::mem::take(self) == ScanState::RunningRescanNeeded
    }
}
