//! Checks the history of a test run against teamd's promises about messages, tasks and members.
//! Each promise is a rule. Each rule checks the whole history and reports all violations.

use crate::history::{History, HistoryEvent, HistoryEventKind, InboxSnapshot, TestMessageId};
use std::collections::{BTreeMap, BTreeSet};

/// A promise that the checker checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckerRule {
    /// A stored message is in its inbox, or its recipient has processed it.
    NoLoss,
    /// A message in an inbox was sent to that inbox, and its send was not refused.
    NoInvention,
    /// No message is in an inbox twice or processed twice. A message is delivered twice only if the
    /// recipient was killed in between.
    NoDuplication,
    /// The messages of one sender are in the order in which they were sent.
    OrderBySender,
    /// A message that was stored before another one was sent is before it in the inbox.
    RealTime,
    /// Each snapshot of an inbox begins with all messages of the snapshot before it.
    Prefix,
    /// A message is read only after it was delivered, and stays read.
    ReadAfterDelivered,
    /// The text of each message is unchanged.
    Intact,
    /// At most one claimant gets a task in each round.
    SingleOwner,
    /// The members of the team are those whose agents run.
    MembersMatchProcesses,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: CheckerRule,
    /// Description for people.
    pub details: String,
}

/// The function that checks one rule. Returns a description of each violation.
type RuleCheck = fn(&HistoryIndex<'_>) -> Vec<String>;

/// Checks a history against all rules. Returns all violations.
pub fn check(history: &History) -> Vec<Violation> {
    let index = HistoryIndex::from_history(history);
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
    let violations = |(rule, check_rule): (CheckerRule, RuleCheck)| {
        check_rule(&index).into_iter().map(move |details| Violation { rule, details })
    };
    rules.into_iter().flat_map(violations).collect()
}

/// A history with its events by message.
struct HistoryIndex<'h> {
    history: &'h History,
    /// The inbox that the message was sent to, and when the send started.
    sent: BTreeMap<&'h TestMessageId, (&'h str, u64)>,
    stored: BTreeMap<&'h TestMessageId, u64>,
    refused: BTreeSet<&'h TestMessageId>,
    /// The time of each delivery, and its recipient.
    delivered: BTreeMap<&'h TestMessageId, Vec<(u64, &'h str)>>,
    processed: BTreeMap<&'h TestMessageId, Vec<u64>>,
    killed: BTreeMap<&'h str, Vec<u64>>,
    /// When a recipient's name was last used again.
    name_reuses: BTreeMap<&'h str, u64>,
    final_snapshots: BTreeMap<&'h str, &'h InboxSnapshot>,
}

impl<'h> HistoryIndex<'h> {
    fn from_history(history: &'h History) -> HistoryIndex<'h> {
        let mut index = HistoryIndex {
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
        history.events.iter().for_each(|event| index.add_event(event));
        index
    }

    fn add_event(&mut self, HistoryEvent { at, kind }: &'h HistoryEvent) {
        match kind {
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

    /// Whether the message was sent before its recipient's name was last used again. Such a message
    /// may be read without a delivery.
    fn predates_name_reuse(&self, id: &TestMessageId) -> bool {
        let sent = self.sent.get(id);
        sent.is_some_and(|(to, at)| self.name_reuses.get(to).is_some_and(|reused| at < reused))
    }

    /// The messages of the final snapshots, each with its inbox and its position there.
    fn final_messages(&self) -> impl Iterator<Item = (&'h str, usize, &'h TestMessageId)> {
        self.final_snapshots.iter().flat_map(|(inbox, snapshot)| {
            snapshot
                .messages
                .iter()
                .enumerate()
                .map(move |(position, message)| (*inbox, position, &message.id))
        })
    }
}

fn check_no_loss(index: &HistoryIndex<'_>) -> Vec<String> {
    let present: BTreeSet<&TestMessageId> = index.final_messages().map(|(_, _, id)| id).collect();
    let is_lost = |id: &&&TestMessageId| !present.contains(**id) && !index.processed.contains_key(**id);
    index.stored.keys().filter(is_lost).map(|id| format!("{id:?} was stored, but is in no inbox")).collect()
}

fn check_no_invention(index: &HistoryIndex<'_>) -> Vec<String> {
    let violation = |(inbox, _, id): (&str, usize, &TestMessageId)| match index.sent.get(id) {
        None => Some(format!("{id:?} is in {inbox}, but was never sent")),
        Some((to, _)) if *to != inbox => Some(format!("{id:?} was sent to {to}, but is in {inbox}")),
        Some(_) if index.refused.contains(id) => Some(format!("{id:?} was refused, but is in {inbox}")),
        Some(_) => None,
    };
    index.final_messages().filter_map(violation).collect()
}

fn check_no_duplication(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut unique = BTreeSet::new();
    let duplicates = index.final_messages().filter(|(inbox, _, id)| !unique.insert((inbox.to_owned(), *id)));
    let duplicates: Vec<String> =
        duplicates.map(|(inbox, _, id)| format!("{id:?} is in {inbox} twice")).collect();
    let processed = index.processed.iter().filter(|(_, times)| times.len() > 1);
    let processed = processed.map(|(id, times)| format!("{id:?} was processed {} times", times.len()));
    let delivered = index.delivered.iter().filter(|(_, deliveries)| {
        let without_kill = |pair: &[(u64, &str)]| {
            let kills = index.killed.get(pair[0].1);
            !kills.is_some_and(|times| times.iter().any(|at| (pair[0].0..=pair[1].0).contains(at)))
        };
        deliveries.windows(2).any(without_kill)
    });
    let delivered = delivered.map(|(id, _)| format!("{id:?} was delivered twice without a kill in between"));
    duplicates.into_iter().chain(processed).chain(delivered).collect()
}

fn check_order_by_sender(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for snapshot in &index.history.snapshots {
        let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
        for message in &snapshot.messages {
            let previous = latest.insert(&message.id.sender, message.id.seq);
            if previous.is_some_and(|previous| previous > message.id.seq) {
                violations.push(format!(
                    "{:?} is after a later message of its sender in {}",
                    message.id, snapshot.inbox
                ));
            }
        }
    }
    violations
}

/// Goes through each inbox from its end. A message violates the rule if it was sent after a message
/// behind it was stored.
fn check_real_time(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for (inbox, snapshot) in &index.final_snapshots {
        // Of the messages behind the current one, the one that was stored first.
        let mut first_stored_at = u64::MAX;
        let mut first_stored = None;
        for message in snapshot.messages.iter().rev() {
            let sent_at = index.sent.get(&message.id).map_or(0, |(_, at)| *at);
            if sent_at > first_stored_at {
                violations.push(format!(
                    "in {inbox}, {:?} is before {first_stored:?}, but was sent after that one was stored",
                    message.id
                ));
            }
            let stored_at = index.stored.get(&message.id).copied().unwrap_or(u64::MAX);
            if stored_at < first_stored_at {
                (first_stored_at, first_stored) = (stored_at, Some(&message.id));
            }
        }
    }
    violations
}

/// The pairs of consecutive snapshots of the same inbox.
fn consecutive_snapshots<'h>(history: &'h History) -> Vec<(&'h InboxSnapshot, &'h InboxSnapshot)> {
    let mut latest: BTreeMap<&str, &InboxSnapshot> = BTreeMap::new();
    let pair_with_previous = |snapshot: &'h InboxSnapshot| {
        latest.insert(&snapshot.inbox, snapshot).map(|earlier| (earlier, snapshot))
    };
    history.snapshots.iter().filter_map(pair_with_previous).collect()
}

fn check_prefix(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for (earlier, later) in consecutive_snapshots(index.history) {
        let later_ids = later.messages.iter().map(|message| Some(&message.id)).chain(std::iter::repeat(None));
        let moved = earlier.messages.iter().zip(later_ids).find(|(message, id)| *id != Some(&message.id));
        violations.extend(
            moved.map(|(message, id)| {
                format!("in {}, {id:?} is in the place of {:?}", later.inbox, message.id)
            }),
        );
    }
    violations
}

fn check_read_after_delivered(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for snapshot in &index.history.snapshots {
        for message in snapshot.messages.iter().filter(|message| message.read) {
            let delivery = index.delivered.get(&message.id).and_then(|deliveries| deliveries.first());
            if delivery.is_none_or(|(at, _)| *at > snapshot.at) && !index.predates_name_reuse(&message.id) {
                violations
                    .push(format!("{:?} is read in {}, but was not delivered", message.id, snapshot.inbox));
            }
        }
    }
    for (earlier, later) in consecutive_snapshots(index.history) {
        let read: BTreeSet<&TestMessageId> =
            earlier.messages.iter().filter(|m| m.read).map(|m| &m.id).collect();
        let unread = later.messages.iter().filter(|message| !message.read && read.contains(&message.id));
        violations.extend(
            unread
                .map(|message| format!("{:?} was read in {}, but is unread again", message.id, later.inbox)),
        );
    }
    violations
}

fn check_intact(index: &HistoryIndex<'_>) -> Vec<String> {
    let snapshots = index.history.snapshots.iter();
    let damaged = snapshots.flat_map(|snapshot| snapshot.messages.iter().filter(|message| !message.intact));
    let damaged: BTreeSet<&TestMessageId> = damaged.map(|message| &message.id).collect();
    damaged.into_iter().map(|id| format!("the text of {id:?} has changed")).collect()
}

fn check_single_owner(index: &HistoryIndex<'_>) -> Vec<String> {
    let mut owners: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for event in &index.history.events {
        if let HistoryEventKind::Claimed { task, round, by } = &event.kind {
            owners.entry((*task, *round)).or_default().push(by);
        }
    }
    let shared = owners.iter().filter(|(_, names)| names.len() > 1);
    shared
        .map(|((task, round), names)| format!("task {task} was claimed by {names:?} in round {round}"))
        .collect()
}

fn check_members_match_processes(index: &HistoryIndex<'_>) -> Vec<String> {
    let members: BTreeSet<&String> = index.history.members.iter().collect();
    let running: BTreeSet<&String> = index.history.running.iter().collect();
    let not_running =
        members.difference(&running).map(|name| format!("{name} is on the team, but does not run"));
    let not_on_team = running.difference(&members).map(|name| format!("{name} runs, but is not on the team"));
    not_running.chain(not_on_team).collect()
}

#[cfg(test)]
mod tests;
