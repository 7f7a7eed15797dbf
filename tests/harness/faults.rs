//! What the checker is worth: sixteen faults, each put into a history in which all is well, that it must catch; a made-up
//! one, or one that a trial has recorded.

use crate::checker::{Rule, check};
use crate::history::{Deed, History, Id, Look, Seen, What};

/// What went wrong, the rule that tells, and how it is put there; none where the history has no place for it.
type Fault = (&'static str, Rule, fn(&mut History) -> Option<()>);

const FAULTS: [Fault; 16] = [
    ("a stored message is gone", Rule::NoLoss, |h| {
        let (look, place) = h.place(|h, _, seen| h.is_stored(&seen.id))?;
        let gone = h.looks[look].messages.remove(place).id;
        h.deeds.retain(
            |deed| !matches!(&deed.what, What::Given { id, .. } | What::Done { id, .. } if *id == gone),
        );
        Some(())
    }),
    ("a message that nobody sent", Rule::NoInvention, |h| {
        let (look, place) = h.place(|_, _, _| true)?;
        h.looks[look].messages[place].id = Id { sender: "nobody".to_owned(), seq: 0 };
        Some(())
    }),
    ("a message in another's inbox", Rule::NoInvention, |h| {
        let (from, place) = h.place(|_, _, _| true)?;
        let to = h.lasts().into_iter().find(|look| *look != from)?;
        let stray = h.looks[from].messages.remove(place);
        h.looks[to].messages.push(stray);
        Some(())
    }),
    ("a refused message was stored all the same", Rule::NoInvention, |h| {
        let (look, place) = h.place(|h, _, seen| h.is_stored(&seen.id))?;
        let id = h.looks[look].messages[place].id.clone();
        h.deeds.retain(|deed| deed.what != What::Stored { id: id.clone() });
        h.note(What::Refused { id });
        Some(())
    }),
    ("one append was done twice", Rule::NoDoubling, |h| {
        let (look, place) = h.place(|_, _, _| true)?;
        let twice = h.looks[look].messages[place].clone();
        h.looks[look].messages.push(twice);
        Some(())
    }),
    ("an agent did the same message twice", Rule::NoDoubling, |h| {
        let done = h.deeds.iter().find(|deed| matches!(deed.what, What::Done { .. }))?.what.clone();
        h.note(done);
        Some(())
    }),
    ("a message was given again to one that lived on", Rule::NoDoubling, |h| {
        let at = h.deeds.iter().position(|deed| matches!(deed.what, What::Given { .. }))?;
        let Deed { at: then, what } = h.deeds[at].clone();
        h.deeds.insert(at + 1, Deed { at: then, what });
        Some(())
    }),
    ("two of one sender changed places", Rule::OrderBySender, |h| {
        let is_followed = |_: &History, look: &Look, seen: &Seen| {
            look.messages.iter().any(|other| other.id.sender == seen.id.sender && other.id.seq > seen.id.seq)
        };
        let (look, first) = h.place(is_followed)?;
        let messages = &mut h.looks[look].messages;
        let second =
            messages[first + 1..].iter().position(|other| other.id.sender == messages[first].id.sender)?;
        messages.swap(first, first + 1 + second);
        Some(())
    }),
    ("one that was sent later stands before one that was stored", Rule::RealTime, |h| {
        let (look, first, second) = h.lasts().into_iter().find_map(|look| {
            let messages = &h.looks[look].messages;
            let follows = |pair: &[Seen]| {
                h.stored_at(&pair[0].id).zip(h.sent_at(&pair[1].id)).is_some_and(|(a, b)| a < b)
            };
            let at = messages.windows(2).position(follows)?;
            Some((look, at, at + 1))
        })?;
        h.looks[look].messages.swap(first, second);
        Some(())
    }),
    ("a rewrite dropped what was there", Rule::Prefix, |h| {
        let look = h.looked_at_twice(|earlier| !earlier.messages.is_empty())?;
        h.looks[look].messages.remove(0);
        Some(())
    }),
    ("a look found half of the inbox", Rule::Prefix, |h| {
        let look = h.lasts().into_iter().find(|look| h.looks[*look].messages.len() > 1)?;
        let whole = h.looks[look].clone();
        let half = whole.messages[..whole.messages.len() / 2].to_vec();
        h.looks.extend([Look { messages: half, ..whole.clone() }, whole]);
        Some(())
    }),
    ("read before its agent had it", Rule::ReadAfterGiven, |h| {
        let (look, place) = h.place(|_, _, seen| seen.read)?;
        let read = h.looks[look].messages[place].id.clone();
        h.deeds.retain(|deed| !matches!(&deed.what, What::Given { id, .. } if *id == read));
        Some(())
    }),
    ("a writer took a read mark back", Rule::ReadAfterGiven, |h| {
        let look = h.looked_at_twice(|earlier| earlier.messages.first().is_some_and(|seen| seen.read))?;
        h.looks[look].messages[0].read = false;
        Some(())
    }),
    ("a byte changed on the way", Rule::Intact, |h| {
        let (look, place) = h.place(|_, _, _| true)?;
        h.looks[look].messages[place].whole = false;
        Some(())
    }),
    ("two took one task", Rule::OneWinner, |h| {
        for by in ["ann", "bob"] {
            h.note(What::Claimed { task: 1, round: 9, by: by.to_owned() });
        }
        Some(())
    }),
    ("an agent that nobody registered", Rule::Roster, |h| {
        h.living.push("eve".to_owned());
        Some(())
    }),
];

/// Puts each into a copy of this one; how many there are.
///
/// # Panics
/// Where the checker does not catch one, by the rule that it breaks; and where there is no place for it.
pub fn each_is_caught(history: &History) -> u64 {
    for (fault, rule, put) in FAULTS {
        let mut history = history.clone();
        put(&mut history).unwrap_or_else(|| panic!("the history has no place for this: {fault}"));
        let violations = check(&history);
        assert!(violations.iter().any(|violation| violation.rule == rule), "{fault}: {violations:?}");
    }
    FAULTS.len() as u64
}

impl History {
    /// The last look at each inbox, where in the list.
    fn lasts(&self) -> Vec<usize> {
        let is_last =
            |at: &usize| !self.looks[at + 1..].iter().any(|look| look.inbox == self.looks[*at].inbox);
        (0..self.looks.len()).filter(is_last).collect()
    }

    /// A message of the last looks that is so: which look, and where in it.
    fn place(&self, is_it: impl Fn(&History, &Look, &Seen) -> bool) -> Option<(usize, usize)> {
        self.lasts().into_iter().find_map(|at| {
            let look = &self.looks[at];
            Some((at, look.messages.iter().position(|seen| is_it(self, look, seen))?))
        })
    }

    /// The last look at an inbox of which the one before was so.
    fn looked_at_twice(&self, is_it: impl Fn(&Look) -> bool) -> Option<usize> {
        self.lasts().into_iter().find(|at| {
            let before = self.looks[..*at].iter().rev().find(|look| look.inbox == self.looks[*at].inbox);
            before.is_some_and(&is_it)
        })
    }

    fn stored_at(&self, message: &Id) -> Option<u64> {
        self.deeds
            .iter()
            .find(|deed| matches!(&deed.what, What::Stored { id } if id == message))
            .map(|deed| deed.at)
    }

    fn sent_at(&self, message: &Id) -> Option<u64> {
        let is_its = |deed: &&Deed| matches!(&deed.what, What::Sends { id, .. } if id == message);
        self.deeds.iter().find(is_its).map(|deed| deed.at)
    }

    fn is_stored(&self, message: &Id) -> bool {
        self.stored_at(message).is_some()
    }

    fn note(&mut self, what: What) {
        let at = self.deeds.iter().map(|deed| deed.at).max().unwrap_or_default() + 1;
        self.deeds.push(Deed { at, what });
    }
}
