//! The state of the long poll of one program's hooks.

use crate::core::connection_spawn_and_watch_ids::ConnId;

/// The long poll of the hooks of one program.
#[derive(Debug)]
pub(crate) struct LongPollState {
    /// The connection of the hook that waits for messages.
    pub(crate) waiting: Option<ConnId>,
    /// When the newest hook started that has sent a long poll, in ms of the monotonic clock.
    pub(crate) newest_hook_started_at: u64,
    /// Whether the next long poll is answered at once, so that the hook reads the files again. True
    /// initially, and again once work may have come while no hook waited.
    pub(crate) has_pending_check: bool,
    /// Whether the end of the turn was reported.
    pub(crate) has_reported_turn_end: bool,
}

impl Default for LongPollState {
    fn default() -> LongPollState {
        LongPollState {
            waiting: None,
            newest_hook_started_at: 0,
            has_pending_check: true,
            has_reported_turn_end: false,
        }
    }
}
