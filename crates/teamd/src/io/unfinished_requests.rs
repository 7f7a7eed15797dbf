//! Limits the memory of requests that clients have sent in part. The limit is for all connections
//! together, because one process may open many.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// The most bytes that all unfinished requests may have together. The line that a connection is
/// receiving does not count. This is enough for four requests of the maximum size, or for a hundred
/// spawns with long prompts.
const MAX_UNFINISHED_BYTES: usize = 4 * protocol::control::framing::MAX_OBJECT_BYTES;

/// The bytes that unfinished requests may still have. All connections share it.
#[derive(Debug, Clone)]
pub(super) struct UnfinishedRequests(Arc<Semaphore>);

impl Default for UnfinishedRequests {
    fn default() -> UnfinishedRequests {
        UnfinishedRequests(Arc::new(Semaphore::new(MAX_UNFINISHED_BYTES)))
    }
}

/// The share of one connection. Dropping it gives its bytes back.
#[derive(Debug, Default)]
pub(super) struct UnfinishedBytes(Option<OwnedSemaphorePermit>);

impl UnfinishedRequests {
    /// Raises a connection's share to `bytes`. Does nothing if the share has as many.
    ///
    /// # Errors
    ///
    /// If the unfinished requests of all connections would have more bytes than allowed.
    pub(super) fn reserve(&self, share: &mut UnfinishedBytes, bytes: usize) -> Result<(), TryAcquireError> {
        let reserved = share.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(bytes.saturating_sub(reserved)).unwrap_or(u32::MAX);
        let permit = self.0.clone().try_acquire_many_owned(missing)?;
        match &mut share.0 {
            Some(share) => share.merge(permit),
            empty => *empty = Some(permit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_limit_and_give_their_bytes_back() {
        let requests = UnfinishedRequests::default();
        let (mut first, mut second) = (UnfinishedBytes::default(), UnfinishedBytes::default());
        let reserve = |share: &mut UnfinishedBytes, bytes| requests.reserve(share, bytes).is_ok();
        assert!(reserve(&mut first, 1_000) && reserve(&mut first, MAX_UNFINISHED_BYTES));
        assert!(reserve(&mut first, 0) && !reserve(&mut second, 1));
        first = UnfinishedBytes::default();
        assert!(reserve(&mut second, MAX_UNFINISHED_BYTES - 1) && reserve(&mut first, 1));
        assert!(!reserve(&mut first, 2));
    }
}
