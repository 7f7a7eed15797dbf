//! Whether a history can have been so: the promises about messages, tasks and members, as rules over what each side
//! wrote down. Each rule looks at all of it, and says everything that breaks it.

use crate::history::{Deed, History, Id, Look, What};
use std::collections::{BTreeMap, BTreeSet};

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// What was stored is there, or its recipient has done with it.
    NoLoss,
    /// What is there was sent, to that inbox, and not refused.
    NoInvention,
    /// Nothing is there twice, or done twice; given twice only to one that was killed in between.
    NoDoubling,
    /// What one sender has sent stands in the order in which it was sent.
    OrderBySender,
    /// What was stored before another was sent stands before it.
    RealTime,
    /// What was there stays there, in its place.
    Prefix,
    /// Read once is read, and not before its recipient had it.
    ReadAfterGiven,
    /// Every byte is as it was sent.
    Intact,
    /// Of those who take a task one gets it.
    OneWinner,
    /// Who lives is on the team, and nobody else.
    Roster,
}

/// What breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    /// For people.
    pub what: String,
}

/// A rule, and everything that breaks it.
type Says = fn(&Facts<'_>) -> Vec<String>;

/// Everything that is wrong with it; nothing, where all promises were kept.
pub fn check(history: &History) -> Vec<Violation> {
    let facts = Facts::of(history);
    let rules: [(Rule, Says); 10] = [
        (Rule::NoLoss, no_loss),
        (Rule::NoInvention, no_invention),
        (Rule::NoDoubling, no_doubling),
        (Rule::OrderBySender, order_by_sender),
        (Rule::RealTime, real_time),
        (Rule::Prefix, prefix),
        (Rule::ReadAfterGiven, read_after_given),
        (Rule::Intact, intact),
        (Rule::OneWinner, one_winner),
        (Rule::Roster, roster),
    ];
    let broken =
        |(rule, says): (Rule, Says)| says(&facts).into_iter().map(move |what| Violation { rule, what });
    rules.into_iter().flat_map(broken).collect()
}

/// A history, looked up by message.
struct Facts<'h> {
    history: &'h History,
    /// To which inbox it was sent, and when that began.
    sent: BTreeMap<&'h Id, (&'h str, u64)>,
    stored: BTreeMap<&'h Id, u64>,
    refused: BTreeSet<&'h Id>,
    /// When its recipient had it, each time.
    given: BTreeMap<&'h Id, Vec<(u64, &'h str)>>,
    done: BTreeMap<&'h Id, Vec<u64>>,
    killed: BTreeMap<&'h str, Vec<u64>>,
    /// When its name was used again, the last time.
    retired: BTreeMap<&'h str, u64>,
    last: BTreeMap<&'h str, &'h Look>,
}

impl<'h> Facts<'h> {
    fn of(history: &'h History) -> Facts<'h> {
        let mut facts = Facts {
            history,
            sent: BTreeMap::new(),
            stored: BTreeMap::new(),
            refused: BTreeSet::new(),
            given: BTreeMap::new(),
            done: BTreeMap::new(),
            killed: BTreeMap::new(),
            retired: BTreeMap::new(),
            last: history.last(),
        };
        history.deeds.iter().for_each(|deed| facts.take(deed));
        facts
    }

    fn take(&mut self, Deed { at, what }: &'h Deed) {
        match what {
            What::Sends { id, to } => drop(self.sent.insert(id, (to, *at))),
            What::Stored { id } => drop(self.stored.insert(id, *at)),
            What::Refused { id } => drop(self.refused.insert(id)),
            What::Given { id, by } => self.given.entry(id).or_default().push((*at, by)),
            What::Done { id, .. } => self.done.entry(id).or_default().push(*at),
            What::Killed { by } => self.killed.entry(by).or_default().push(*at),
            What::Retired { by } => drop(self.retired.insert(by, *at)),
            What::Claimed { .. } => {}
        }
    }

    /// It was sent before the last use of its recipient's name: nobody need ever have seen it.
    fn is_retired(&self, id: &Id) -> bool {
        let sent = self.sent.get(id);
        sent.is_some_and(|(to, at)| self.retired.get(to).is_some_and(|retired| at < retired))
    }

    /// Each message of the last looks, with its inbox and its place.
    fn there(&self) -> impl Iterator<Item = (&'h str, usize, &'h Id)> {
        self.last.iter().flat_map(|(inbox, look)| {
            look.messages.iter().enumerate().map(move |(place, message)| (*inbox, place, &message.id))
        })
    }
}

fn no_loss(facts: &Facts<'_>) -> Vec<String> {
    let there: BTreeSet<&Id> = facts.there().map(|(_, _, id)| id).collect();
    let lost = |id: &&&Id| !there.contains(**id) && !facts.done.contains_key(**id);
    facts.stored.keys().filter(lost).map(|id| format!("{id:?} was stored, and is nowhere")).collect()
}

fn no_invention(facts: &Facts<'_>) -> Vec<String> {
    let wrong = |(inbox, _, id): (&str, usize, &Id)| match facts.sent.get(id) {
        None => Some(format!("{id:?} is in {inbox}, and nobody sent it")),
        Some((to, _)) if *to != inbox => Some(format!("{id:?} was sent to {to}, and is in {inbox}")),
        Some(_) if facts.refused.contains(id) => Some(format!("{id:?} was refused, and is in {inbox}")),
        Some(_) => None,
    };
    facts.there().filter_map(wrong).collect()
}

fn no_doubling(facts: &Facts<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let twice = facts.there().filter(|(inbox, _, id)| !seen.insert((inbox.to_owned(), *id)));
    let twice: Vec<String> = twice.map(|(inbox, _, id)| format!("{id:?} is in {inbox} twice")).collect();
    let done = facts.done.iter().filter(|(_, at)| at.len() > 1);
    let done = done.map(|(id, at)| format!("{id:?} was done {} times", at.len()));
    let given = facts.given.iter().filter(|(_, times)| {
        let again = |pair: &[(u64, &str)]| {
            let killed = facts.killed.get(pair[0].1);
            !killed.is_some_and(|at| at.iter().any(|at| (pair[0].0..=pair[1].0).contains(at)))
        };
        times.windows(2).any(again)
    });
    let given = given.map(|(id, _)| format!("{id:?} was given twice to one that lived on"));
    twice.into_iter().chain(done).chain(given).collect()
}

fn order_by_sender(facts: &Facts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for look in &facts.history.looks {
        let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
        for message in &look.messages {
            let before = latest.insert(&message.id.sender, message.id.seq);
            if before.is_some_and(|before| before > message.id.seq) {
                wrong.push(format!(
                    "{:?} stands behind a later one of its sender in {}",
                    message.id, look.inbox
                ));
            }
        }
    }
    wrong
}

/// From the end: before a message there must be none that was sent after it was stored.
fn real_time(facts: &Facts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (inbox, look) in &facts.last {
        let mut first_stored = u64::MAX;
        let mut whose = None;
        for message in look.messages.iter().rev() {
            let sent = facts.sent.get(&message.id).map_or(0, |(_, at)| *at);
            if sent > first_stored {
                wrong.push(format!(
                    "in {inbox} {:?} stands before {whose:?}, stored before it was sent",
                    message.id
                ));
            }
            let stored = facts.stored.get(&message.id).copied().unwrap_or(u64::MAX);
            if stored < first_stored {
                (first_stored, whose) = (stored, Some(&message.id));
            }
        }
    }
    wrong
}

/// Two looks at an inbox, one after the other.
fn pairs<'h>(history: &'h History) -> Vec<(&'h Look, &'h Look)> {
    let mut before: BTreeMap<&str, &Look> = BTreeMap::new();
    let follow = |look: &'h Look| before.insert(&look.inbox, look).map(|earlier| (earlier, look));
    history.looks.iter().filter_map(follow).collect()
}

fn prefix(facts: &Facts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (earlier, later) in pairs(facts.history) {
        let now = later.messages.iter().map(|message| Some(&message.id)).chain(std::iter::repeat(None));
        let moved = earlier.messages.iter().zip(now).find(|(message, now)| *now != Some(&message.id));
        wrong.extend(
            moved.map(|(message, now)| {
                format!("in {} where {:?} was there is {now:?}", later.inbox, message.id)
            }),
        );
    }
    wrong
}

fn read_after_given(facts: &Facts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for look in &facts.history.looks {
        for message in look.messages.iter().filter(|message| message.read) {
            let given = facts.given.get(&message.id).and_then(|times| times.first());
            if given.is_none_or(|(at, _)| *at > look.at) && !facts.is_retired(&message.id) {
                wrong.push(format!("{:?} is read in {}, and was not given", message.id, look.inbox));
            }
        }
    }
    for (earlier, later) in pairs(facts.history) {
        let read: BTreeSet<&Id> = earlier.messages.iter().filter(|m| m.read).map(|m| &m.id).collect();
        let unread = later.messages.iter().filter(|message| !message.read && read.contains(&message.id));
        wrong.extend(
            unread.map(|message| format!("{:?} was read in {}, and is not", message.id, later.inbox)),
        );
    }
    wrong
}

fn intact(facts: &Facts<'_>) -> Vec<String> {
    let looks = facts.history.looks.iter();
    let broken = looks.flat_map(|look| look.messages.iter().filter(|message| !message.whole));
    let broken: BTreeSet<&Id> = broken.map(|message| &message.id).collect();
    broken.into_iter().map(|id| format!("{id:?} is not as it was sent")).collect()
}

fn one_winner(facts: &Facts<'_>) -> Vec<String> {
    let mut winners: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for deed in &facts.history.deeds {
        if let What::Claimed { task, round, by } = &deed.what {
            winners.entry((*task, *round)).or_default().push(by);
        }
    }
    let several = winners.iter().filter(|(_, by)| by.len() > 1);
    several.map(|((task, round), by)| format!("task {task} was taken by {by:?} in round {round}")).collect()
}

fn roster(facts: &Facts<'_>) -> Vec<String> {
    let members: BTreeSet<&String> = facts.history.members.iter().collect();
    let living: BTreeSet<&String> = facts.history.living.iter().collect();
    let ghosts = members.difference(&living).map(|name| format!("{name} is on the team, and does not live"));
    let strays = living.difference(&members).map(|name| format!("{name} lives, and is on no team"));
    ghosts.chain(strays).collect()
}

#[cfg(test)]
mod tests;
