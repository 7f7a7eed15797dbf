//! Items that the link has not written to its spool yet. For each item, the list has what this end
//! does once the item is in the spool. The link then *keeps* the item: it arrives even after a
//! crash.

use protocol::annex_link::TaskChange;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::collections::VecDeque;

/// What happens when the link keeps an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnAcceptance {
    /// The message is recorded, so that it is not sent again.
    RecordMessage { team: TeamName, key: String },
    /// The change of the task is recorded as sent.
    RecordChange { team: TeamName, id: TaskId, change: TaskChange },
    /// The events of the team up to this number are recorded as sent.
    RecordEvents { team: TeamName, number: u64 },
    /// The oldest answer of the team is removed, so that it is not sent again.
    ForgetAnswer { team: TeamName },
    /// The record of the deleted team is removed, so that its end is not sent again.
    ForgetTeam { team: TeamName },
    /// The record of the declined home is removed, so that the answer is not sent again.
    ForgetDeclinedOffer { team: TeamName, epoch: u64 },
}

/// The items that were sent since the start and are not kept yet. A crash may lose them.
#[derive(Debug)]
pub(crate) struct AwaitingAcceptance {
    /// The number of the last item.
    last_number: u64,
    /// What happens when the link keeps an item, with the number of the item. Lowest number first.
    waiting: VecDeque<(u64, OnAcceptance)>,
    /// How many of them have events.
    event_items: usize,
}

impl AwaitingAcceptance {
    /// `last_number` is the number of the last item before the start.
    pub(crate) fn new(last_number: u64) -> AwaitingAcceptance {
        AwaitingAcceptance { last_number, waiting: VecDeque::new(), event_items: 0 }
    }

    /// The number of the next item.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Counts the next item. `None` if nothing happens when the link keeps it.
    pub(crate) fn add(&mut self, on_acceptance: Option<OnAcceptance>) {
        self.last_number += 1;
        self.event_items += usize::from(matches!(on_acceptance, Some(OnAcceptance::RecordEvents { .. })));
        self.waiting.extend(on_acceptance.map(|on_acceptance| (self.last_number, on_acceptance)));
    }

    /// Returns the oldest entry, if the link has stored its item: `number` is the number of the
    /// newest item that the link has stored. `None` if there is no such entry.
    pub(crate) fn next_due(&self, number: u64) -> Option<(u64, OnAcceptance)> {
        self.waiting.front().filter(|(waiting, _)| *waiting <= number).cloned()
    }

    /// Removes the entry that [`AwaitingAcceptance::next_due`] has returned.
    pub(crate) fn remove_next(&mut self) {
        let removed = self.waiting.pop_front();
        self.event_items -= usize::from(matches!(removed, Some((_, OnAcceptance::RecordEvents { .. }))));
    }

    /// How many items with events the link does not keep yet.
    pub(crate) fn event_items(&self) -> usize {
        self.event_items
    }

    /// The number of the first item that waits with this.
    pub(crate) fn number_of(&self, on_acceptance: &OnAcceptance) -> Option<u64> {
        self.waiting.iter().find(|(_, waiting)| waiting == on_acceptance).map(|(number, _)| *number)
    }
}
