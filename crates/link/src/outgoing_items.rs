//! The items of this end that the other end has not acknowledged, in order.
//!
//! Invariant: an item is sent only after it is in the spool. If a restart lost an item that was
//! sent, the next item would get the same number, and the other end would ignore it as a
//! repetition. `simulator` checks it.

use crate::spool_lines::{SpoolContents, SpoolWrite};
use crate::submission::{Submission, measure};
use crate::write_in_progress::{WriteReport, WriteSlot};
use protocol::annex_link::{LinkItem, WINDOW_BYTES, WINDOW_ITEMS};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct OutgoingItems {
    /// The items after `acknowledged`, each with the length of its frame in bytes.
    items: VecDeque<(Arc<LinkItem>, usize)>,
    /// The other end has stored the items up to this number.
    acknowledged: u64,
    /// The spool has the items up to this number.
    spooled: u64,
    /// The items up to this number were sent on this connection, or are acknowledged.
    sent: u64,
    /// Length of all items in bytes.
    bytes: usize,
    /// Length of the sent items that are not acknowledged, in bytes.
    in_flight_bytes: usize,
    /// Length of the acknowledged items that are still in the spool, in bytes.
    slack_bytes: usize,
    pub(crate) writes: WriteSlot<RunningWrite>,
}

/// The write to the spool that is in progress.
#[derive(Debug)]
pub(crate) struct RunningWrite {
    /// Number of its last item.
    through: u64,
    /// By how much it shortens the spool, in bytes.
    removed_bytes: usize,
}

impl OutgoingItems {
    pub(crate) fn new(contents: SpoolContents) -> OutgoingItems {
        let (acknowledged, spooled) = (contents.acknowledged, contents.last_number());
        let lengths = contents.items.into_iter().map(|item| {
            let bytes = measure(&item);
            (item, bytes)
        });
        let items: VecDeque<_> = lengths.collect();
        let bytes = items.iter().map(|(_, bytes)| bytes).sum();
        let writes = WriteSlot::new();
        OutgoingItems {
            items,
            acknowledged,
            spooled,
            sent: 0,
            bytes,
            in_flight_bytes: 0,
            slack_bytes: 0,
            writes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Number of the last submitted item.
    pub(crate) fn last(&self) -> u64 {
        self.acknowledged + self.items.len() as u64
    }

    pub(crate) fn submit(&mut self, submission: Submission) {
        let (item, bytes) = submission.with_number(self.last() + 1);
        self.items.push_back((item, bytes));
        self.bytes += bytes;
    }

    /// The next write to the spool. It contains all items that were submitted since the last write
    /// began. `None` if a write is in progress, or if there is nothing to write.
    pub(crate) fn next_write(&mut self, now_ms: u64, spool_slack_bytes: usize) -> Option<SpoolWrite> {
        let replaces = self.slack_bytes >= spool_slack_bytes && self.slack_bytes >= self.bytes;
        if !self.writes.is_free(now_ms) || !replaces && self.spooled == self.last() {
            return None;
        }
        let removed_bytes = if replaces { self.slack_bytes } else { 0 };
        self.writes.start(RunningWrite { through: self.last(), removed_bytes });
        Some(match replaces {
            true => SpoolWrite::Replace(SpoolContents {
                acknowledged: self.acknowledged,
                items: self.items_after(self.acknowledged),
            }),
            false => SpoolWrite::Append(self.items_after(self.spooled)),
        })
    }

    fn items_after(&self, number: u64) -> Vec<Arc<LinkItem>> {
        let skipped = (number - self.acknowledged) as usize;
        self.items.iter().skip(skipped).map(|(item, _)| Arc::clone(item)).collect()
    }

    /// Records the end of the write. Returns the number up to which all items are in the spool now.
    pub(crate) fn finish_write(&mut self) -> Option<(u64, WriteReport)> {
        let (write, report) = self.writes.finish()?;
        self.spooled = write.through;
        self.slack_bytes -= write.removed_bytes;
        Some((self.spooled, report))
    }

    /// Whether the other end can go on after the item `received`.
    pub(crate) fn can_resume_after(&self, received: u64) -> bool {
        (self.acknowledged..=self.spooled).contains(&received)
    }

    /// Starts a connection to an end that has stored the items up to `received`.
    pub(crate) fn resume_after(&mut self, received: u64) {
        (self.sent, self.in_flight_bytes) = (self.acknowledged, 0);
        self.remove_through(received);
        self.sent = received;
    }

    /// Removes the items up to `number`, which the other end has stored.
    ///
    /// A text for people if item `number` was not sent on this connection.
    pub(crate) fn acknowledge(&mut self, number: u64) -> Result<(), String> {
        if number > self.sent {
            return Err(format!("the other end acknowledges item {number}, which was not sent"));
        }
        let sent_bytes = self.remove_through(number);
        self.in_flight_bytes -= sent_bytes;
        Ok(())
    }

    /// Returns the length of the removed items in bytes.
    fn remove_through(&mut self, number: u64) -> usize {
        let count = number.saturating_sub(self.acknowledged) as usize;
        let removed: usize = self.items.drain(..count).map(|(_, bytes)| bytes).sum();
        self.acknowledged += count as u64;
        self.bytes -= removed;
        self.slack_bytes += removed;
        removed
    }

    /// The next item to send, if the window allows it.
    pub(crate) fn next_to_send(&mut self) -> Option<Arc<LinkItem>> {
        let in_flight = (self.sent - self.acknowledged) as usize;
        let (item, bytes) = self.items.get(in_flight).filter(|_| self.sent < self.spooled)?;
        let fits = in_flight < WINDOW_ITEMS && self.in_flight_bytes + bytes <= WINDOW_BYTES;
        if in_flight > 0 && !fits {
            return None;
        }
        self.sent += 1;
        self.in_flight_bytes += bytes;
        Some(Arc::clone(item))
    }
}
