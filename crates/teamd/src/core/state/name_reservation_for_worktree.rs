//! The reservation of a member's name for a worktree.

/// Why a name is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameReservation {
    /// Git creates the worktree.
    Creating,
    /// The worktree exists. The reservation ends if the member is not spawned by this time, in
    /// milliseconds on the monotonic clock.
    ReservedUntil(u64),
}
