//! Items that the application wants to send.

use protocol::annex_link::{ItemPayload, LinkFrame, LinkItem, MAX_FRAME_BYTES, MemberGeneration};
use std::io::Write;
use std::sync::Arc;

/// An item without a number. The link gives it the next number of this end.
#[derive(Debug, Clone)]
pub struct Submission {
    item: Arc<LinkItem>,
    bytes: usize,
}

/// The item does not fit in a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot send an item of {0} bytes to the other host: the limit is {MAX_FRAME_BYTES}")]
pub struct ItemTooLong(pub usize);

impl Submission {
    /// Makes an item that has no number yet. `spawn` is the spawn that the item comes from or is
    /// for, or `None` if the item concerns no spawn.
    ///
    /// # Errors
    /// [`ItemTooLong`] if the frame would be longer than [`MAX_FRAME_BYTES`].
    pub fn new(spawn: Option<MemberGeneration>, payload: ItemPayload) -> Result<Submission, ItemTooLong> {
        let item = Arc::new(LinkItem { number: u64::MAX, spawn, payload });
        let bytes = measure(&item);
        if bytes > MAX_FRAME_BYTES { Err(ItemTooLong(bytes)) } else { Ok(Submission { item, bytes }) }
    }

    /// The item with its number, and the maximum length of its frame in bytes.
    pub(crate) fn with_number(self, number: u64) -> (Arc<LinkItem>, usize) {
        (Arc::new(LinkItem { number, ..Arc::unwrap_or_clone(self.item) }), self.bytes)
    }
}

/// The length of the item's frame in bytes.
pub(crate) fn measure(item: &Arc<LinkItem>) -> usize {
    let mut counter = ByteCounter(0);
    let frame = LinkFrame::Item(Arc::clone(item));
    serde_json::to_writer(&mut counter, &frame).expect("an item has string keys and no failing impl");
    counter.0
}

struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
