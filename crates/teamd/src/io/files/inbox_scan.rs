//! What is new in an inbox since the last look, for the event log; and what is gone of it that was acknowledged.

use crate::core::jobs::files::{InboxScanResult, MessageHeader, RestoreRule};
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use std::collections::BTreeMap;
use store::{Error, InboxChange, InboxCursor, InboxReconciler, ReaderKind, Team};

/// How far each inbox has been looked at.
#[derive(Debug)]
pub(super) struct InboxScanner {
    /// How many entries an earlier daemon told of each, until this one has looked through it.
    logged_counts: BTreeMap<(TeamName, AgentName), usize>,
    cursors: BTreeMap<(TeamName, AgentName), InboxCursor>,
    /// Those that have more than grown, since they were held against what was acknowledged; and whether of them some were
    /// read, which nobody was told yet.
    rewritten: BTreeMap<(TeamName, AgentName), bool>,
    /// What was acknowledged.
    ledgers: BTreeMap<TeamName, InboxReconciler>,
}

impl InboxScanner {
    pub(super) fn new(told: BTreeMap<(TeamName, AgentName), usize>) -> InboxScanner {
        InboxScanner {
            logged_counts: told,
            cursors: BTreeMap::new(),
            rewritten: BTreeMap::new(),
            ledgers: BTreeMap::new(),
        }
    }

    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget_team(&mut self, team: &TeamName) {
        self.logged_counts.retain(|(of, _), _| of != team);
        self.cursors.retain(|(of, _), _| of != team);
        self.rewritten.retain(|(of, _), _| of != team);
        self.ledgers.remove(team);
    }

    /// The inboxes in which something was not found yet that was acknowledged: nobody is told when they are to be
    /// looked at.
    pub(super) fn inboxes_with_missing(&mut self, team: &Team) -> Result<Vec<String>, Error> {
        let ledger = self.ledgers.entry(team.name().clone()).or_default();
        ledger.read_journal(team)?;
        Ok(ledger.inboxes_with_unseen())
    }

    /// A part of what is new, so that memory does not grow with an inbox; where there is more, it is to be looked at again.
    pub(super) fn scan(
        &mut self,
        team: &Team,
        inbox: &str,
        guard: RestoreRule,
    ) -> Result<InboxScanResult, Error> {
        let name = AgentName::new_unchecked(inbox);
        let key = (team.name().clone(), name.clone());
        let before = self.cursors.get(&key);
        if matches!(guard, RestoreRule::OwnDelivery | RestoreRule::ForeignProgram) {
            let followed = self.ledgers.entry(team.name().clone()).or_default().read_journal(team);
            followed.unwrap_or_else(|error| log_failure(&error));
        }
        let (entries, mark) = team.inbox(&name).read_chunk_since(before)?;
        let mut mail = self.classify(&key, &entries, &mark);
        if before.is_none() || mark.is_reset() || mail.unread.is_some() {
            *self.rewritten.entry(key.clone()).or_default() |= mail.unread.is_some();
        }
        let unread = mark.unread_count();
        self.cursors.insert(key.clone(), mark);
        if mail.has_more {
            return Ok(InboxScanResult { unread: None, ..mail });
        }
        self.logged_counts.remove(&key);
        let changed = self.rewritten.get_mut(&key);
        let looked = if changed.is_some() { InboxChange::Rewritten } else { InboxChange::Appended(&entries) };
        mail.unread = changed.is_some_and(std::mem::take).then_some(unread);
        match self.restore_missing(team, &name, looked, guard) {
            Ok(put_back) => {
                self.rewritten.remove(&key);
                mail.restored = put_back;
            }
            // What has changed is held against it at the next look.
            Err(error) => log_failure(&error),
        }
        Ok(mail)
    }

    fn classify(
        &self,
        key: &(TeamName, AgentName),
        entries: &[InboxEntry],
        mark: &InboxCursor,
    ) -> InboxScanResult {
        let more = mark.has_more();
        // Its owner has taken out what it consumed, or somebody has rewritten it: nobody knows what is new.
        if mark.is_reset() {
            return InboxScanResult {
                known: summarize_all(entries),
                unread: Some(mark.unread_count()),
                has_more: more,
                ..InboxScanResult::default()
            };
        }
        let told = self.logged_counts.get(key).copied().unwrap_or(0);
        let (earlier, new) = entries.split_at(entries.partition_point(|entry| entry.index < told));
        // What is new was unread once, even if its owner was faster than this look.
        let was_unread = self.cursors.get(key).map_or(0, InboxCursor::unread_count)
            + earlier.iter().filter(|entry| entry.unread().is_some()).count()
            + new.iter().filter(|entry| entry.message.is_ok()).count();
        let unread = (mark.unread_count() < was_unread).then_some(mark.unread_count());
        InboxScanResult {
            new: summarize_all(new),
            known: summarize_all(earlier),
            unread,
            has_more: more,
            ..InboxScanResult::default()
        }
    }

    fn restore_missing(
        &mut self,
        team: &Team,
        name: &AgentName,
        looked: InboxChange<'_>,
        guard: RestoreRule,
    ) -> Result<Vec<MessageHeader>, Error> {
        let Some(ledger) = self.ledgers.get_mut(team.name()) else { return Ok(Vec::new()) };
        let inbox = team.inbox(name);
        let reader = match guard {
            RestoreRule::NotNow => return Ok(Vec::new()),
            RestoreRule::Never => {
                ledger.stop_restoring(&inbox);
                return Ok(Vec::new());
            }
            RestoreRule::OwnDelivery => ReaderKind::OwnDelivery,
            RestoreRule::ForeignProgram => ReaderKind::ForeignProgram,
        };
        Ok(ledger.reconcile(&inbox, looked, reader)?.iter().map(|message| summarize(0, message)).collect())
    }
}

/// What was acknowledged is looked at beside what is new, which is told whatever came of that: it stays noted.
fn log_failure(error: &Error) {
    tracing::warn!("cannot compare an inbox with what was sent to it: {error}");
}

/// Without those that are no messages: they have no sender.
fn summarize_all(entries: &[InboxEntry]) -> Vec<MessageHeader> {
    entries.iter().filter_map(summarize_entry).collect()
}

fn summarize_entry(entry: &InboxEntry) -> Option<MessageHeader> {
    Some(summarize(entry.index, entry.message.as_ref().ok()?))
}

fn summarize(index: usize, message: &Message) -> MessageHeader {
    MessageHeader {
        index,
        from: AgentName::new_unchecked(&message.from),
        summary: message.summary.clone(),
        payload: Payload::parse(&message.text),
    }
}
