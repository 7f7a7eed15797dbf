//! Tests the checker: applies sixteen mutations, one at a time, to a valid history and checks that
//! the checker detects each. The history is made up, or a test has recorded it.

use crate::checker::{CheckerRule, check};
use crate::history::{
    History, HistoryEvent, HistoryEventKind, InboxSnapshot, SnapshotMessage, TestMessageId,
};

/// A description of the mutation, the rule that it violates, and the function that applies it. The
/// function returns `None` if the history has no event or message that it could change.
type Mutation = (&'static str, CheckerRule, fn(&mut History) -> Option<()>);

const MUTATIONS: [Mutation; 16] = [
    ("a stored message is lost", CheckerRule::NoLoss, |h| {
        let (snapshot, position) = h.find_message(|h, _, message| h.is_stored(&message.id))?;
        let lost = h.snapshots[snapshot].messages.remove(position).id;
        h.events.retain(
            |event| !matches!(&event.kind, HistoryEventKind::Delivered { id, .. } | HistoryEventKind::Processed { id, .. } if *id == lost),
        );
        Some(())
    }),
    ("a message was never sent", CheckerRule::NoInvention, |h| {
        let (snapshot, position) = h.find_message(|_, _, _| true)?;
        h.snapshots[snapshot].messages[position].id = TestMessageId { sender: "unknown".to_owned(), seq: 0 };
        Some(())
    }),
    ("a message is in another inbox", CheckerRule::NoInvention, |h| {
        let (from, position) = h.find_message(|_, _, _| true)?;
        let to = h.last_snapshots().into_iter().find(|snapshot| *snapshot != from)?;
        let message = h.snapshots[from].messages.remove(position);
        h.snapshots[to].messages.push(message);
        Some(())
    }),
    ("a refused message was stored", CheckerRule::NoInvention, |h| {
        let (snapshot, position) = h.find_message(|h, _, message| h.is_stored(&message.id))?;
        let id = h.snapshots[snapshot].messages[position].id.clone();
        h.events.retain(|event| event.kind != HistoryEventKind::Stored { id: id.clone() });
        h.add_event(HistoryEventKind::Refused { id });
        Some(())
    }),
    ("a message was stored twice", CheckerRule::NoDuplication, |h| {
        let (snapshot, position) = h.find_message(|_, _, _| true)?;
        let copy = h.snapshots[snapshot].messages[position].clone();
        h.snapshots[snapshot].messages.push(copy);
        Some(())
    }),
    ("an agent processed a message twice", CheckerRule::NoDuplication, |h| {
        let processed = h
            .events
            .iter()
            .find(|event| matches!(event.kind, HistoryEventKind::Processed { .. }))?
            .kind
            .clone();
        h.add_event(processed);
        Some(())
    }),
    ("a message was delivered twice without a kill in between", CheckerRule::NoDuplication, |h| {
        let index =
            h.events.iter().position(|event| matches!(event.kind, HistoryEventKind::Delivered { .. }))?;
        let delivered = h.events[index].clone();
        h.events.insert(index + 1, delivered);
        Some(())
    }),
    ("two messages of one sender are swapped", CheckerRule::OrderBySender, |h| {
        let has_later = |_: &History, snapshot: &InboxSnapshot, message: &SnapshotMessage| {
            let id = &message.id;
            snapshot.messages.iter().any(|other| other.id.sender == id.sender && other.id.seq > id.seq)
        };
        let (snapshot, first) = h.find_message(has_later)?;
        let messages = &mut h.snapshots[snapshot].messages;
        let second =
            messages[first + 1..].iter().position(|other| other.id.sender == messages[first].id.sender)?;
        messages.swap(first, first + 1 + second);
        Some(())
    }),
    ("a message is before one that was stored earlier", CheckerRule::RealTime, |h| {
        let (snapshot, first, second) = h.last_snapshots().into_iter().find_map(|snapshot| {
            let messages = &h.snapshots[snapshot].messages;
            let in_order = |pair: &[SnapshotMessage]| {
                h.stored_at(&pair[0].id)
                    .zip(h.sent_at(&pair[1].id))
                    .is_some_and(|(stored, sent)| stored < sent)
            };
            let first = messages.windows(2).position(in_order)?;
            Some((snapshot, first, first + 1))
        })?;
        h.snapshots[snapshot].messages.swap(first, second);
        Some(())
    }),
    ("a rewrite dropped an earlier message", CheckerRule::Prefix, |h| {
        let snapshot = h.snapshot_with_predecessor(|earlier| !earlier.messages.is_empty())?;
        h.snapshots[snapshot].messages.remove(0);
        Some(())
    }),
    ("a snapshot has only half of the inbox", CheckerRule::Prefix, |h| {
        let snapshot =
            h.last_snapshots().into_iter().find(|snapshot| h.snapshots[*snapshot].messages.len() > 1)?;
        let full = h.snapshots[snapshot].clone();
        let half = full.messages[..full.messages.len() / 2].to_vec();
        h.snapshots.extend([InboxSnapshot { messages: half, ..full.clone() }, full]);
        Some(())
    }),
    ("a message was read before its delivery", CheckerRule::ReadAfterDelivered, |h| {
        let (snapshot, position) = h.find_message(|_, _, message| message.read)?;
        let read = h.snapshots[snapshot].messages[position].id.clone();
        h.events
            .retain(|event| !matches!(&event.kind, HistoryEventKind::Delivered { id, .. } if *id == read));
        Some(())
    }),
    ("a read message became unread", CheckerRule::ReadAfterDelivered, |h| {
        let snapshot = h.snapshot_with_predecessor(|earlier| {
            earlier.messages.first().is_some_and(|message| message.read)
        })?;
        h.snapshots[snapshot].messages[0].read = false;
        Some(())
    }),
    ("the text of a message changed", CheckerRule::Intact, |h| {
        let (snapshot, position) = h.find_message(|_, _, _| true)?;
        h.snapshots[snapshot].messages[position].intact = false;
        Some(())
    }),
    ("two members own one task", CheckerRule::SingleOwner, |h| {
        for by in ["ann", "bob"] {
            h.add_event(HistoryEventKind::Claimed { task: 1, round: 9, by: by.to_owned() });
        }
        Some(())
    }),
    ("an agent runs, but is not a member", CheckerRule::MembersMatchProcesses, |h| {
        h.running.push("eve".to_owned());
        Some(())
    }),
];

/// Applies each mutation to a copy of `history` and checks that the checker detects it. Returns the
/// number of mutations.
///
/// # Panics
/// If the checker does not report a violation of the right rule, or if a mutation can't be applied.
pub fn assert_all_caught(history: &History) -> u64 {
    for (description, rule, apply) in MUTATIONS {
        let mut history = history.clone();
        apply(&mut history).unwrap_or_else(|| panic!("the history can't be changed so: {description}"));
        let violations = check(&history);
        assert!(
            violations.iter().any(|violation| violation.rule == rule),
            "not detected: {description}: {violations:?}"
        );
    }
    MUTATIONS.len() as u64
}

impl History {
    /// The indices of the last snapshots of the inboxes.
    fn last_snapshots(&self) -> Vec<usize> {
        let is_last = |index: &usize| {
            !self.snapshots[index + 1..].iter().any(|later| later.inbox == self.snapshots[*index].inbox)
        };
        (0..self.snapshots.len()).filter(is_last).collect()
    }

    /// Finds a message in the last snapshots that satisfies `predicate`. Returns the index of the
    /// snapshot and the position of the message in it.
    fn find_message(
        &self,
        predicate: impl Fn(&History, &InboxSnapshot, &SnapshotMessage) -> bool,
    ) -> Option<(usize, usize)> {
        self.last_snapshots().into_iter().find_map(|index| {
            let snapshot = &self.snapshots[index];
            let position = snapshot.messages.iter().position(|message| predicate(self, snapshot, message))?;
            Some((index, position))
        })
    }

    /// Finds a last snapshot whose predecessor, the snapshot of the same inbox before it, satisfies
    /// `predicate`. Returns the index of the last snapshot.
    fn snapshot_with_predecessor(&self, predicate: impl Fn(&InboxSnapshot) -> bool) -> Option<usize> {
        self.last_snapshots().into_iter().find(|index| {
            let inbox = &self.snapshots[*index].inbox;
            let predecessor = self.snapshots[..*index].iter().rev().find(|earlier| earlier.inbox == *inbox);
            predecessor.is_some_and(&predicate)
        })
    }

    fn stored_at(&self, message: &TestMessageId) -> Option<u64> {
        self.events
            .iter()
            .find(|event| matches!(&event.kind, HistoryEventKind::Stored { id } if id == message))
            .map(|event| event.at)
    }

    fn sent_at(&self, message: &TestMessageId) -> Option<u64> {
        let is_send = |event: &&HistoryEvent| matches!(&event.kind, HistoryEventKind::SendStarted { id, .. } if id == message);
        self.events.iter().find(is_send).map(|event| event.at)
    }

    fn is_stored(&self, message: &TestMessageId) -> bool {
        self.stored_at(message).is_some()
    }

    fn add_event(&mut self, kind: HistoryEventKind) {
        let at = self.events.iter().map(|event| event.at).max().unwrap_or_default() + 1;
        self.events.push(HistoryEvent { at, kind });
    }
}
