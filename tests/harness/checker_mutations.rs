//! What the checker is worth: sixteen faults, each put into a history in which all is well, that it must catch; a made-up
//! one, or one that a trial has recorded.

use crate::checker::{CheckerRule, check};
use crate::history::{
    History, HistoryEvent, HistoryEventKind, InboxSnapshot, SnapshotMessage, TestMessageId,
};

/// What went wrong, the rule that tells, and how it is put there; none where the history has no place for it.
type Mutation = (&'static str, CheckerRule, fn(&mut History) -> Option<()>);

const MUTATIONS: [Mutation; 16] = [
    ("a stored message is gone", CheckerRule::NoLoss, |h| {
        let (look, place) = h.find_message(|h, _, seen| h.is_stored(&seen.id))?;
        let gone = h.snapshots[look].messages.remove(place).id;
        h.events.retain(
            |deed| !matches!(&deed.kind, HistoryEventKind::Delivered { id, .. } | HistoryEventKind::Processed { id, .. } if *id == gone),
        );
        Some(())
    }),
    ("a message that nobody sent", CheckerRule::NoInvention, |h| {
        let (look, place) = h.find_message(|_, _, _| true)?;
        h.snapshots[look].messages[place].id = TestMessageId { sender: "nobody".to_owned(), seq: 0 };
        Some(())
    }),
    ("a message in another's inbox", CheckerRule::NoInvention, |h| {
        let (from, place) = h.find_message(|_, _, _| true)?;
        let to = h.last_snapshots().into_iter().find(|look| *look != from)?;
        let stray = h.snapshots[from].messages.remove(place);
        h.snapshots[to].messages.push(stray);
        Some(())
    }),
    ("a refused message was stored all the same", CheckerRule::NoInvention, |h| {
        let (look, place) = h.find_message(|h, _, seen| h.is_stored(&seen.id))?;
        let id = h.snapshots[look].messages[place].id.clone();
        h.events.retain(|deed| deed.kind != HistoryEventKind::Stored { id: id.clone() });
        h.add_event(HistoryEventKind::Refused { id });
        Some(())
    }),
    ("one append was done twice", CheckerRule::NoDuplication, |h| {
        let (look, place) = h.find_message(|_, _, _| true)?;
        let twice = h.snapshots[look].messages[place].clone();
        h.snapshots[look].messages.push(twice);
        Some(())
    }),
    ("an agent did the same message twice", CheckerRule::NoDuplication, |h| {
        let done = h
            .events
            .iter()
            .find(|deed| matches!(deed.kind, HistoryEventKind::Processed { .. }))?
            .kind
            .clone();
        h.add_event(done);
        Some(())
    }),
    ("a message was given again to one that lived on", CheckerRule::NoDuplication, |h| {
        let at = h.events.iter().position(|deed| matches!(deed.kind, HistoryEventKind::Delivered { .. }))?;
        let HistoryEvent { at: then, kind: what } = h.events[at].clone();
        h.events.insert(at + 1, HistoryEvent { at: then, kind: what });
        Some(())
    }),
    ("two of one sender changed places", CheckerRule::OrderBySender, |h| {
        let is_followed = |_: &History, look: &InboxSnapshot, seen: &SnapshotMessage| {
            look.messages.iter().any(|other| other.id.sender == seen.id.sender && other.id.seq > seen.id.seq)
        };
        let (look, first) = h.find_message(is_followed)?;
        let messages = &mut h.snapshots[look].messages;
        let second =
            messages[first + 1..].iter().position(|other| other.id.sender == messages[first].id.sender)?;
        messages.swap(first, first + 1 + second);
        Some(())
    }),
    ("one that was sent later stands before one that was stored", CheckerRule::RealTime, |h| {
        let (look, first, second) = h.last_snapshots().into_iter().find_map(|look| {
            let messages = &h.snapshots[look].messages;
            let follows = |pair: &[SnapshotMessage]| {
                h.stored_at(&pair[0].id).zip(h.sent_at(&pair[1].id)).is_some_and(|(a, b)| a < b)
            };
            let at = messages.windows(2).position(follows)?;
            Some((look, at, at + 1))
        })?;
        h.snapshots[look].messages.swap(first, second);
        Some(())
    }),
    ("a rewrite dropped what was there", CheckerRule::Prefix, |h| {
        let look = h.snapshot_with_predecessor(|earlier| !earlier.messages.is_empty())?;
        h.snapshots[look].messages.remove(0);
        Some(())
    }),
    ("a look found half of the inbox", CheckerRule::Prefix, |h| {
        let look = h.last_snapshots().into_iter().find(|look| h.snapshots[*look].messages.len() > 1)?;
        let whole = h.snapshots[look].clone();
        let half = whole.messages[..whole.messages.len() / 2].to_vec();
        h.snapshots.extend([InboxSnapshot { messages: half, ..whole.clone() }, whole]);
        Some(())
    }),
    ("read before its agent had it", CheckerRule::ReadAfterDelivered, |h| {
        let (look, place) = h.find_message(|_, _, seen| seen.read)?;
        let read = h.snapshots[look].messages[place].id.clone();
        h.events.retain(|deed| !matches!(&deed.kind, HistoryEventKind::Delivered { id, .. } if *id == read));
        Some(())
    }),
    ("a writer took a read mark back", CheckerRule::ReadAfterDelivered, |h| {
        let look =
            h.snapshot_with_predecessor(|earlier| earlier.messages.first().is_some_and(|seen| seen.read))?;
        h.snapshots[look].messages[0].read = false;
        Some(())
    }),
    ("a byte changed on the way", CheckerRule::Intact, |h| {
        let (look, place) = h.find_message(|_, _, _| true)?;
        h.snapshots[look].messages[place].intact = false;
        Some(())
    }),
    ("two took one task", CheckerRule::SingleOwner, |h| {
        for by in ["ann", "bob"] {
            h.add_event(HistoryEventKind::Claimed { task: 1, round: 9, by: by.to_owned() });
        }
        Some(())
    }),
    ("an agent that nobody registered", CheckerRule::MembersMatchProcesses, |h| {
        h.running.push("eve".to_owned());
        Some(())
    }),
];

/// Puts each into a copy of this one; how many there are.
///
/// # Panics
/// Where the checker does not catch one, by the rule that it breaks; and where there is no place for it.
pub fn assert_all_caught(history: &History) -> u64 {
    for (fault, rule, put) in MUTATIONS {
        let mut history = history.clone();
        put(&mut history).unwrap_or_else(|| panic!("the history has no place for this: {fault}"));
        let violations = check(&history);
        assert!(violations.iter().any(|violation| violation.rule == rule), "{fault}: {violations:?}");
    }
    MUTATIONS.len() as u64
}

impl History {
    /// The last look at each inbox, where in the list.
    fn last_snapshots(&self) -> Vec<usize> {
        let is_last =
            |at: &usize| !self.snapshots[at + 1..].iter().any(|look| look.inbox == self.snapshots[*at].inbox);
        (0..self.snapshots.len()).filter(is_last).collect()
    }

    /// A message of the last looks that is so: which look, and where in it.
    fn find_message(
        &self,
        is_it: impl Fn(&History, &InboxSnapshot, &SnapshotMessage) -> bool,
    ) -> Option<(usize, usize)> {
        self.last_snapshots().into_iter().find_map(|at| {
            let look = &self.snapshots[at];
            Some((at, look.messages.iter().position(|seen| is_it(self, look, seen))?))
        })
    }

    /// The last look at an inbox of which the one before was so.
    fn snapshot_with_predecessor(&self, is_it: impl Fn(&InboxSnapshot) -> bool) -> Option<usize> {
        self.last_snapshots().into_iter().find(|at| {
            let before =
                self.snapshots[..*at].iter().rev().find(|look| look.inbox == self.snapshots[*at].inbox);
            before.is_some_and(&is_it)
        })
    }

    fn stored_at(&self, message: &TestMessageId) -> Option<u64> {
        self.events
            .iter()
            .find(|deed| matches!(&deed.kind, HistoryEventKind::Stored { id } if id == message))
            .map(|deed| deed.at)
    }

    fn sent_at(&self, message: &TestMessageId) -> Option<u64> {
        let is_its = |deed: &&HistoryEvent| matches!(&deed.kind, HistoryEventKind::SendStarted { id, .. } if id == message);
        self.events.iter().find(is_its).map(|deed| deed.at)
    }

    fn is_stored(&self, message: &TestMessageId) -> bool {
        self.stored_at(message).is_some()
    }

    fn add_event(&mut self, what: HistoryEventKind) {
        let at = self.events.iter().map(|deed| deed.at).max().unwrap_or_default() + 1;
        self.events.push(HistoryEvent { at, kind: what });
    }
}
