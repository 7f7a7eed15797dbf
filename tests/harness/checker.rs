//! Whether a history can have been so: the promises about messages, tasks and members, as rules over what each side
//! wrote down. Each rule looks at all of it, and says everything that breaks it.

use crate::history::{History, HistoryEvent, HistoryEventKind, InboxSnapshot, TestMessageId};
use std::collections::{BTreeMap, BTreeSet};

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckerRule {
    /// What was stored is there, or its recipient has done with it.
    NoLoss,
    /// What is there was sent, to that inbox, and not refused.
    NoInvention,
    /// Nothing is there twice, or done twice; given twice only to one that was killed in between.
    NoDuplication,
    /// What one sender has sent stands in the order in which it was sent.
    OrderBySender,
    /// What was stored before another was sent stands before it.
    RealTime,
    /// What was there stays there, in its place.
    Prefix,
    /// Read once is read, and not before its recipient had it.
    ReadAfterDelivered,
    /// Every byte is as it was sent.
    Intact,
    /// Of those who take a task one gets it.
    SingleOwner,
    /// Who lives is on the team, and nobody else.
    MembersMatchProcesses,
}

/// What breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: CheckerRule,
    /// For people.
    pub details: String,
}

/// A rule, and everything that breaks it.
type RuleCheck = fn(&HistoryIndex<'_>) -> Vec<String>;

/// Everything that is wrong with it; nothing, where all promises were kept.
pub fn check(history: &History) -> Vec<Violation> {
    let facts = HistoryIndex::from_history(history);
    let rules: [(CheckerRule, RuleCheck); 10] = [
        (CheckerRule::NoLoss, check_no_loss),
        (CheckerRule::NoInvention, check_no_invention),
        (CheckerRule::NoDuplication, check_no_duplication),
        (CheckerRule::OrderBySender, check_order_by_sender),
        (CheckerRule::RealTime, check_real_time),
        (CheckerRule::Prefix, check_prefix),
        (CheckerRule::ReadAfterDelivered, check_read_after_delivered),
        (CheckerRule::Intact, check_intact),
        (CheckerRule::SingleOwner, check_single_owner),
        (CheckerRule::MembersMatchProcesses, check_members_match_processes),
    ];
    let broken = |(rule, says): (CheckerRule, RuleCheck)| {
        says(&facts).into_iter().map(move |what| Violation { rule, details: what })
    };
    rules.into_iter().flat_map(broken).collect()
}

/// A history, looked up by message.
struct HistoryIndex<'h> {
    history: &'h History,
    /// To which inbox it was sent, and when that began.
    sent: BTreeMap<&'h TestMessageId, (&'h str, u64)>,
    stored: BTreeMap<&'h TestMessageId, u64>,
    refused: BTreeSet<&'h TestMessageId>,
    /// When its recipient had it, each time.
    delivered: BTreeMap<&'h TestMessageId, Vec<(u64, &'h str)>>,
    processed: BTreeMap<&'h TestMessageId, Vec<u64>>,
    killed: BTreeMap<&'h str, Vec<u64>>,
    /// When its name was used again, the last time.
    name_reuses: BTreeMap<&'h str, u64>,
    final_snapshots: BTreeMap<&'h str, &'h InboxSnapshot>,
}

impl<'h> HistoryIndex<'h> {
    fn from_history(history: &'h History) -> HistoryIndex<'h> {
        let mut facts = HistoryIndex {
            history,
            sent: BTreeMap::new(),
            stored: BTreeMap::new(),
            refused: BTreeSet::new(),
            delivered: BTreeMap::new(),
            processed: BTreeMap::new(),
            killed: BTreeMap::new(),
            name_reuses: BTreeMap::new(),
            final_snapshots: history.final_snapshots(),
        };
        history.events.iter().for_each(|deed| facts.add_event(deed));
        facts
    }

    fn add_event(&mut self, HistoryEvent { at, kind: what }: &'h HistoryEvent) {
        match what {
            HistoryEventKind::SendStarted { id, to } => drop(self.sent.insert(id, (to, *at))),
            HistoryEventKind::Stored { id } => drop(self.stored.insert(id, *at)),
            HistoryEventKind::Refused { id } => drop(self.refused.insert(id)),
            HistoryEventKind::Delivered { id, by } => self.delivered.entry(id).or_default().push((*at, by)),
            HistoryEventKind::Processed { id, .. } => self.processed.entry(id).or_default().push(*at),
            HistoryEventKind::Killed { by } => self.killed.entry(by).or_default().push(*at),
            HistoryEventKind::NameReused { by } => drop(self.name_reuses.insert(by, *at)),
            HistoryEventKind::Claimed { .. } => {}
        }
    }

    /// It was sent before the last use of its recipient's name: nobody need ever have seen it.
    fn predates_name_reuse(&self, id: &TestMessageId) -> bool {
        let sent = self.sent.get(id);
        sent.is_some_and(|(to, at)| self.name_reuses.get(to).is_some_and(|retired| at < retired))
    }

    /// Each message of the last looks, with its inbox and its place.
    fn final_messages(&self) -> impl Iterator<Item = (&'h str, usize, &'h TestMessageId)> {
        self.final_snapshots.iter().flat_map(|(inbox, look)| {
            look.messages.iter().enumerate().map(move |(place, message)| (*inbox, place, &message.id))
        })
    }
}

fn check_no_loss(facts: &HistoryIndex<'_>) -> Vec<String> {
    let there: BTreeSet<&TestMessageId> = facts.final_messages().map(|(_, _, id)| id).collect();
    let lost = |id: &&&TestMessageId| !there.contains(**id) && !facts.processed.contains_key(**id);
    facts.stored.keys().filter(lost).map(|id| format!("{id:?} was stored, and is nowhere")).collect()
}

fn check_no_invention(facts: &HistoryIndex<'_>) -> Vec<String> {
    let wrong = |(inbox, _, id): (&str, usize, &TestMessageId)| match facts.sent.get(id) {
        None => Some(format!("{id:?} is in {inbox}, and nobody sent it")),
        Some((to, _)) if *to != inbox => Some(format!("{id:?} was sent to {to}, and is in {inbox}")),
        Some(_) if facts.refused.contains(id) => Some(format!("{id:?} was refused, and is in {inbox}")),
        Some(_) => None,
    };
    facts.final_messages().filter_map(wrong).collect()
}

fn check_no_duplication(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let twice = facts.final_messages().filter(|(inbox, _, id)| !seen.insert((inbox.to_owned(), *id)));
    let twice: Vec<String> = twice.map(|(inbox, _, id)| format!("{id:?} is in {inbox} twice")).collect();
    let done = facts.processed.iter().filter(|(_, at)| at.len() > 1);
    let done = done.map(|(id, at)| format!("{id:?} was done {} times", at.len()));
    let given = facts.delivered.iter().filter(|(_, times)| {
        let again = |pair: &[(u64, &str)]| {
            let killed = facts.killed.get(pair[0].1);
            !killed.is_some_and(|at| at.iter().any(|at| (pair[0].0..=pair[1].0).contains(at)))
        };
        times.windows(2).any(again)
    });
    let given = given.map(|(id, _)| format!("{id:?} was given twice to one that lived on"));
    twice.into_iter().chain(done).chain(given).collect()
}

fn check_order_by_sender(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for look in &facts.history.snapshots {
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
fn check_real_time(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (inbox, look) in &facts.final_snapshots {
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
fn consecutive_snapshots<'h>(history: &'h History) -> Vec<(&'h InboxSnapshot, &'h InboxSnapshot)> {
    let mut before: BTreeMap<&str, &InboxSnapshot> = BTreeMap::new();
    let follow = |look: &'h InboxSnapshot| before.insert(&look.inbox, look).map(|earlier| (earlier, look));
    history.snapshots.iter().filter_map(follow).collect()
}

fn check_prefix(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (earlier, later) in consecutive_snapshots(facts.history) {
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

fn check_read_after_delivered(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for look in &facts.history.snapshots {
        for message in look.messages.iter().filter(|message| message.read) {
            let given = facts.delivered.get(&message.id).and_then(|times| times.first());
            if given.is_none_or(|(at, _)| *at > look.at) && !facts.predates_name_reuse(&message.id) {
                wrong.push(format!("{:?} is read in {}, and was not given", message.id, look.inbox));
            }
        }
    }
    for (earlier, later) in consecutive_snapshots(facts.history) {
        let read: BTreeSet<&TestMessageId> =
            earlier.messages.iter().filter(|m| m.read).map(|m| &m.id).collect();
        let unread = later.messages.iter().filter(|message| !message.read && read.contains(&message.id));
        wrong.extend(
            unread.map(|message| format!("{:?} was read in {}, and is not", message.id, later.inbox)),
        );
    }
    wrong
}

fn check_intact(facts: &HistoryIndex<'_>) -> Vec<String> {
    let looks = facts.history.snapshots.iter();
    let broken = looks.flat_map(|look| look.messages.iter().filter(|message| !message.intact));
    let broken: BTreeSet<&TestMessageId> = broken.map(|message| &message.id).collect();
    broken.into_iter().map(|id| format!("{id:?} is not as it was sent")).collect()
}

fn check_single_owner(facts: &HistoryIndex<'_>) -> Vec<String> {
    let mut winners: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for deed in &facts.history.events {
        if let HistoryEventKind::Claimed { task, round, by } = &deed.kind {
            winners.entry((*task, *round)).or_default().push(by);
        }
    }
    let several = winners.iter().filter(|(_, by)| by.len() > 1);
    several.map(|((task, round), by)| format!("task {task} was taken by {by:?} in round {round}")).collect()
}

fn check_members_match_processes(facts: &HistoryIndex<'_>) -> Vec<String> {
    let members: BTreeSet<&String> = facts.history.members.iter().collect();
    let living: BTreeSet<&String> = facts.history.running.iter().collect();
    let ghosts = members.difference(&living).map(|name| format!("{name} is on the team, and does not live"));
    let strays = living.difference(&members).map(|name| format!("{name} lives, and is on no team"));
    ghosts.chain(strays).collect()
}

#[cfg(test)]
mod tests;
