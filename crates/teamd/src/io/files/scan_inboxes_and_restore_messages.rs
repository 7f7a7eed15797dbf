//! Scans inboxes: finds new messages for the event log, and restores messages that another program
//! removed but the journal still has.

use crate::core::jobs::file_jobs::{MessageContent, RestoreRule};
use crate::core::jobs::file_results::{InboxScanResult, MessageHeader};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::Payload;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;
use store::{Error, InboxChange, InboxCursor, InboxReconciler, ReaderKind, Team};

/// How far each inbox has been scanned.
#[derive(Debug)]
pub(super) struct InboxScanner {
    /// For each inbox, how many of its entries earlier daemons have written to the event log. An
    /// inbox is removed from this map when this daemon has scanned it completely.
    logged_counts: BTreeMap<(TeamName, MemberName), usize>,
    cursors: BTreeMap<(TeamName, MemberName), InboxCursor>,
    /// Inboxes that must be compared with the journal as a whole at the end of their scan. An inbox
    /// is in this map at its first scan by this daemon, and when it was rewritten or messages in it
    /// were marked as read. The value is `true` if the result of the scan must include the number
    /// of unread messages.
    rewritten: BTreeMap<(TeamName, MemberName), bool>,
    /// Compares the inboxes of a team with its journal.
    reconcilers: BTreeMap<TeamName, InboxReconciler>,
}

impl InboxScanner {
    pub(super) fn new(logged_counts: BTreeMap<(TeamName, MemberName), usize>) -> InboxScanner {
        InboxScanner {
            logged_counts,
            cursors: BTreeMap::new(),
            rewritten: BTreeMap::new(),
            reconcilers: BTreeMap::new(),
        }
    }

    /// Forgets a team. A later team of the same name begins with empty inboxes.
    pub(super) fn forget_team(&mut self, team: &TeamName) {
        self.logged_counts.retain(|(other, _), _| other != team);
        self.cursors.retain(|(other, _), _| other != team);
        self.rewritten.retain(|(other, _), _| other != team);
        self.reconcilers.remove(team);
    }

    /// Returns the file names of inboxes from which a message of the journal is missing. The daemon
    /// may get no further file event for such an inbox, so each rescan must scan it.
    pub(super) fn inboxes_with_missing(&mut self, team: &Team) -> Result<Vec<String>, Error> {
        let reconciler = self.reconcilers.entry(team.name().clone()).or_default();
        reconciler.read_journal(team)?;
        Ok(reconciler.inboxes_with_unseen())
    }

    /// Scans the next chunk of an inbox. After the last chunk, restores messages that the journal
    /// has and the inbox lacks.
    ///
    /// An inbox is scanned in chunks so that memory use does not grow with the size of the inbox.
    /// If `has_more` is true in the result, the caller must call this function again.
    pub(super) fn scan(
        &mut self,
        team: &Team,
        inbox: &str,
        restore_rule: RestoreRule,
        content: MessageContent,
    ) -> Result<InboxScanResult, Error> {
        let name = MemberName::new_unchecked(inbox);
        let key = (team.name().clone(), name.clone());
        let old_cursor = self.cursors.get(&key);
        if matches!(restore_rule, RestoreRule::OwnDelivery | RestoreRule::ForeignProgram) {
            let journal = self.reconcilers.entry(team.name().clone()).or_default().read_journal(team);
            journal.unwrap_or_else(|error| log_journal_error(&error));
        }
        let (entries, cursor) = team.inbox(&name).read_chunk_since(old_cursor)?;
        let mut scan = self.classify(&key, &entries, &cursor);
        if content == MessageContent::Whole {
            let messages =
                entries.iter().filter_map(|entry| Some((entry.index, entry.message.clone().ok()?)));
            scan.messages = messages.collect();
        }
        if old_cursor.is_none() || cursor.is_reset() || scan.unread.is_some() {
            *self.rewritten.entry(key.clone()).or_default() |= scan.unread.is_some();
        }
        let unread = cursor.unread_count();
        self.cursors.insert(key.clone(), cursor);
        if scan.has_more {
            return Ok(InboxScanResult { unread: None, ..scan });
        }
        self.logged_counts.remove(&key);
        let is_rewritten = self.rewritten.get_mut(&key);
        let change =
            if is_rewritten.is_some() { InboxChange::Rewritten } else { InboxChange::Appended(&entries) };
        scan.unread = is_rewritten.is_some_and(std::mem::take).then_some(unread);
        match self.restore_missing(team, &name, change, restore_rule) {
            Ok(restored) => {
                self.rewritten.remove(&key);
                scan.restored = restored;
            }
            // The inbox stays in `self.rewritten`, so the next scan compares it again.
            Err(error) => log_journal_error(&error),
        }
        Ok(scan)
    }

    /// Separates the entries of a chunk into new entries and entries that are in the event log
    /// already.
    fn classify(
        &self,
        key: &(TeamName, MemberName),
        entries: &[InboxEntry],
        cursor: &InboxCursor,
    ) -> InboxScanResult {
        let has_more = cursor.has_more();
        // The cursor says how far the inbox was scanned. After a rewrite of the inbox, for example
        // by an owner who removed read messages, the cursor begins again at the first entry. The
        // scan then can't tell which entries are new, so all of them count as logged already.
        if cursor.is_reset() {
            return InboxScanResult {
                logged: summarize_all(entries),
                unread: Some(cursor.unread_count()),
                has_more,
                ..InboxScanResult::default()
            };
        }
        let logged_count = self.logged_counts.get(key).copied().unwrap_or(0);
        let (earlier, new) = entries.split_at(entries.partition_point(|entry| entry.index < logged_count));
        // `unread_before` counts the unread messages at the last scan and the messages that were
        // added since. If the inbox has fewer unread messages now, some were marked as read.
        let unread_before = self.cursors.get(key).map_or(0, InboxCursor::unread_count)
            + earlier.iter().filter(|entry| entry.unread().is_some()).count()
            + new.iter().filter(|entry| entry.message.is_ok()).count();
        let unread = (cursor.unread_count() < unread_before).then_some(cursor.unread_count());
        InboxScanResult {
            new: summarize_all(new),
            logged: summarize_all(earlier),
            unread,
            has_more,
            ..InboxScanResult::default()
        }
    }

    /// Restores to the inbox the messages that only the journal has. Returns these messages.
    fn restore_missing(
        &mut self,
        team: &Team,
        name: &MemberName,
        change: InboxChange<'_>,
        restore_rule: RestoreRule,
    ) -> Result<Vec<MessageHeader>, Error> {
        let Some(reconciler) = self.reconcilers.get_mut(team.name()) else { return Ok(Vec::new()) };
        let inbox = team.inbox(name);
        let reader = match restore_rule {
            RestoreRule::NotNow => return Ok(Vec::new()),
            RestoreRule::Never => {
                reconciler.stop_restoring(&inbox);
                return Ok(Vec::new());
            }
            RestoreRule::OwnDelivery => ReaderKind::OwnDelivery,
            RestoreRule::ForeignProgram => ReaderKind::ForeignProgram,
        };
        let restored = reconciler.reconcile(&inbox, change, reader)?;
        Ok(restored.iter().map(|message| summarize(0, message)).collect())
    }
}

/// Logs an error of reading or comparing the journal. The inbox scan continues, because no message
/// is lost: a later scan compares the inbox with the journal again.
fn log_journal_error(error: &Error) {
    tracing::warn!("cannot compare an inbox with its journal: {error}");
}

/// Returns the headers of all valid messages in `entries`. Other entries are skipped.
fn summarize_all(entries: &[InboxEntry]) -> Vec<MessageHeader> {
    entries.iter().filter_map(summarize_entry).collect()
}

fn summarize_entry(entry: &InboxEntry) -> Option<MessageHeader> {
    Some(summarize(entry.index, entry.message.as_ref().ok()?))
}

fn summarize(index: usize, message: &Message) -> MessageHeader {
    MessageHeader {
        index,
        from: MemberName::new_unchecked(&message.from),
        summary: message.summary.clone(),
        payload: Payload::parse(&message.text),
    }
}
