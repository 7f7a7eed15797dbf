//! The items of the other end that have arrived and are not stored yet, in order.

use crate::event_and_effect::ReceivedPosition;
use crate::write_in_progress::{WriteReport, WriteSlot};
use protocol::annex_link::{LinkItem, MemberGeneration, WINDOW_BYTES, WINDOW_ITEMS};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct IncomingItems {
    /// What the application has stored.
    stored: ReceivedPosition,
    /// The highest epoch of a home that was accepted. The application may not have stored it yet.
    epoch: u64,
    /// The items after `stored`, each with its length in bytes.
    items: VecDeque<(Arc<LinkItem>, usize)>,
    bytes: usize,
    /// The last start of each member.
    generations: BTreeMap<(TeamName, MemberName), u64>,
    /// How many items of earlier starts were dropped.
    dropped: u64,
    pub(crate) writes: WriteSlot<RunningApply>,
}

/// The items that the application stores now.
#[derive(Debug)]
pub(crate) struct RunningApply {
    position: ReceivedPosition,
    /// How many items up to the position are dropped.
    dropped: u64,
}

/// What has changed since items were stored.
#[derive(Debug)]
pub(crate) struct StoredChange {
    /// The new position.
    pub(crate) position: ReceivedPosition,
    /// How many items of earlier starts were dropped in all, if it were more than before.
    pub(crate) dropped_total: Option<u64>,
    pub(crate) report: WriteReport,
}

impl IncomingItems {
    pub(crate) fn new(stored: ReceivedPosition, epoch: u64) -> IncomingItems {
        IncomingItems {
            stored,
            epoch: epoch.max(stored.epoch),
            items: VecDeque::new(),
            bytes: 0,
            generations: BTreeMap::new(),
            dropped: 0,
            writes: WriteSlot::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn stored(&self) -> ReceivedPosition {
        self.stored
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records a start of a member. An earlier start than the last known one has no effect.
    pub(crate) fn add_spawn(&mut self, spawn: &MemberGeneration) {
        let key = (spawn.team.clone(), spawn.member.clone());
        let last = self.generations.entry(key).or_default();
        *last = spawn.generation.max(*last);
    }

    fn is_of_last_spawn(&self, item: &LinkItem) -> bool {
        item.spawn.as_ref().is_none_or(|spawn| {
            let last = self.generations.get(&(spawn.team.clone(), spawn.member.clone()));
            last.is_none_or(|last| spawn.generation >= *last)
        })
    }

    /// Adds an item that has arrived. An item that arrived before is ignored: after a connection
    /// was cut, the other end repeats what was not acknowledged.
    ///
    /// # Errors
    /// A text for people, if the other end breaks the protocol.
    pub(crate) fn receive(&mut self, item: Arc<LinkItem>, bytes: usize) -> Result<(), String> {
        let next = self.stored.number + self.items.len() as u64 + 1;
        if item.number < next {
            return Ok(());
        }
        if item.number > next {
            return Err(format!("item {} has arrived instead of item {next}", item.number));
        }
        let fits = self.items.len() < WINDOW_ITEMS && self.bytes + bytes <= WINDOW_BYTES;
        if !self.items.is_empty() && !fits {
            return Err(format!("item {next} has arrived too early: the window is full"));
        }
        if let Some(spawn) = &item.spawn {
            self.add_spawn(spawn);
        }
        self.bytes += bytes;
        self.items.push_back((item, bytes));
        Ok(())
    }

    /// Records the higher epoch of a new home. Items of the earlier home that wait to be stored are
    /// dropped. Items that are being stored at this moment are kept.
    pub(crate) fn raise_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        let running = self.writes.running().map_or(self.stored.number, |apply| apply.position.number);
        self.keep_through(running);
    }

    fn keep_through(&mut self, number: u64) {
        self.items.truncate((number - self.stored.number) as usize);
        self.bytes = self.items.iter().map(|(_, bytes)| bytes).sum();
    }

    /// Starts the next write. Returns the items that the application must store, and the position
    /// that it must store with them. All items that have arrived since the last write are in this
    /// write.
    ///
    /// Returns `None` if there is nothing new to store, if a write is in progress, or if the last
    /// write has failed and the pause before the next one is not over.
    pub(crate) fn next_apply(&mut self, now_ms: u64) -> Option<(Vec<Arc<LinkItem>>, ReceivedPosition)> {
        let position =
            ReceivedPosition { epoch: self.epoch, number: self.stored.number + self.items.len() as u64 };
        if !self.writes.is_free(now_ms) || position == self.stored {
            return None;
        }
        let last_spawns = self.items.iter().filter(|(item, _)| self.is_of_last_spawn(item));
        let items: Vec<_> = last_spawns.map(|(item, _)| Arc::clone(item)).collect();
        let dropped = (self.items.len() - items.len()) as u64;
        self.writes.start(RunningApply { position, dropped });
        Some((items, position))
    }

    /// Records that the application has stored the items.
    pub(crate) fn finish_apply(&mut self) -> Option<StoredChange> {
        let (apply, report) = self.writes.finish()?;
        let count = (apply.position.number - self.stored.number) as usize;
        self.bytes -= self.items.drain(..count).map(|(_, bytes)| bytes).sum::<usize>();
        (self.stored, self.dropped) = (apply.position, self.dropped + apply.dropped);
        let dropped_total = (apply.dropped > 0).then_some(self.dropped);
        Some(StoredChange { position: self.stored, dropped_total, report })
    }

    /// Records that the application could not store the items. Items of an earlier home are not
    /// tried again.
    pub(crate) fn fail_apply(&mut self, retry_at_ms: u64) -> Option<WriteReport> {
        let (apply, report) = self.writes.fail(retry_at_ms)?;
        if apply.position.epoch < self.epoch {
            self.keep_through(self.stored.number);
        }
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_items::message;

    /// Items 1 and 2 are being stored, and item 3 waits, when a home with epoch 2 is accepted.
    fn after_move() -> IncomingItems {
        let mut incoming = IncomingItems::new(ReceivedPosition { epoch: 1, number: 0 }, 0);
        let receive = |incoming: &mut IncomingItems, number| {
            incoming.receive(message(number).with_number(number).0, 100).unwrap();
        };
        [1, 2].into_iter().for_each(|number| receive(&mut incoming, number));
        assert_eq!(incoming.next_apply(0).unwrap().0.len(), 2);
        receive(&mut incoming, 3);
        incoming.raise_epoch(2);
        incoming
    }

    #[test]
    fn waiting_items_of_an_earlier_home_are_forgotten() {
        let mut incoming = after_move();
        incoming.finish_apply().unwrap();
        let (items, position) = incoming.next_apply(0).unwrap();
        assert_eq!((items.len(), position), (0, ReceivedPosition { epoch: 2, number: 2 }));
    }

    #[test]
    fn failed_items_of_an_earlier_home_are_not_tried_again() {
        let mut incoming = after_move();
        incoming.fail_apply(0).unwrap();
        let (items, position) = incoming.next_apply(0).unwrap();
        assert_eq!((items.len(), position), (0, ReceivedPosition { epoch: 2, number: 0 }));
    }
}
