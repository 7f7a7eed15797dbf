//! A spawn that waits until the other members of its batch can be registered, too.

use crate::core::connection_spawn_and_watch_ids::SpawnId;

/// A spawn that can be registered, and waits for others of its batch.
#[derive(Debug)]
pub(crate) struct QueuedRegistration {
    pub(crate) spawn: SpawnId,
    /// When the spawn was queued, in milliseconds on the monotonic clock.
    pub(crate) since: u64,
}
