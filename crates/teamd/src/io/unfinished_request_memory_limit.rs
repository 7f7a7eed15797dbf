//! Limits the memory for requests of which clients have sent only a part so far. All connections
//! share one limit, because one process may open many connections.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Maximum number of bytes of all unfinished requests together: four requests of the maximum size,
/// or about a hundred spawns with long prompts. A request can have several lines. Only its complete
/// lines count.
const MAX_UNFINISHED_BYTES: usize = 4 * protocol::control_socket::framing::MAX_OBJECT_BYTES;

/// How many bytes may still be reserved for unfinished requests. All connections share this limit.
#[derive(Debug, Clone)]
pub(super) struct UnfinishedRequests(Arc<Semaphore>);

impl Default for UnfinishedRequests {
    fn default() -> UnfinishedRequests {
        UnfinishedRequests(Arc::new(Semaphore::new(MAX_UNFINISHED_BYTES)))
    }
}

/// The bytes that one connection has reserved. Drop gives them back.
#[derive(Debug, Default)]
pub(super) struct UnfinishedBytes(Option<OwnedSemaphorePermit>);

impl UnfinishedRequests {
    /// Reserves memory for the unfinished request of a connection, so that the connection has
    /// `bytes` bytes in total. Does nothing if it has that many already.
    ///
    /// # Errors
    ///
    /// If all connections together would have more bytes than allowed.
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
