//! Whether `doctor` may change anything.

/// What `doctor` does about a problem that it can fix safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FixMode {
    /// Report the problem only.
    ReportOnly,
    /// Fix the problem and report that.
    Fix,
}
