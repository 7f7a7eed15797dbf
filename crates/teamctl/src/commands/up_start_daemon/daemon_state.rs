//! Whether `teamctl up` has started the daemon.

/// Whether the command has started the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonState {
    RanAlready,
    Started,
}

impl DaemonState {
    /// The end of the sentence "teamd …".
    pub(super) fn text(self) -> &'static str {
        match self {
            DaemonState::RanAlready => "runs already",
            DaemonState::Started => "is ready",
        }
    }
}
