//! The tools `ReadInbox` and `MarkRead`, for agents that fetch their messages themselves (delivery
//! `pull`). `ReadInbox` marks nothing as read. The agent calls `MarkRead` for the messages that it
//! has received. So no message is lost if the result of `ReadInbox` does not arrive.

use super::input_and_output_schemas::{Property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::InboxEntry;
use protocol::team_and_member_names::MemberName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{Caller, EntrySelection, Inbox};

/// How many messages `ReadInbox` returns by default.
const DEFAULT_LIMIT: usize = 50;

pub(super) struct ReadInboxTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInboxInput {
    /// Whether to return read messages too.
    #[serde(default)]
    all: Option<bool>,
    /// How many messages to return, the newest; 50 by default.
    #[serde(default)]
    limit: Option<usize>,
    /// The member whose inbox to read, for the lead; your own by default.
    #[serde(default)]
    name: Option<String>,
}

impl ToolDefinition for ReadInboxTool {
    const NAME: &'static str = "ReadInbox";
    const TITLE: &'static str = "Read messages";
    const DESCRIPTION: &'static str = "Read your unread messages. Only needed if your program does not deliver them by \
        itself. Messages stay unread until you name their ids in MarkRead.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = ReadInboxInput;
    const OUTPUT: &'static [Property] =
        &[required_property("messages", "array"), required_property("unread", "integer")];

    async fn call(context: &Arc<ServerContext>, input: ReadInboxInput) -> Result<Value, ErrorReport> {
        run_blocking(context, move |context| read_inbox(&context.caller()?, &input)).await
    }
}

fn read_inbox(caller: &Caller, input: &ReadInboxInput) -> Result<Value, ErrorReport> {
    let inbox = open_inbox(caller, input.name.as_deref())?;
    let selection = if input.all == Some(true) { EntrySelection::All } else { EntrySelection::Unread };
    let last = inbox.read_last(selection, input.limit.unwrap_or(DEFAULT_LIMIT))?;
    let messages: Vec<Value> = last.entries.iter().map(entry_json).collect();
    Ok(json!({"messages": messages, "unread": last.unread}))
}

fn entry_json(entry: &InboxEntry) -> Value {
    let mut object = entry.to_json();
    object["id"] = json!(message_id(entry));
    object
}

/// The id of a message: the message's index in the inbox, and a hash of its content without the
/// read flag. The index alone is not enough, because other programs may remove entries between
/// `ReadInbox` and `MarkRead`.
fn message_id(entry: &InboxEntry) -> String {
    let mut hasher = DefaultHasher::new();
    match &entry.message {
        Ok(message) => (&message.from, &message.text, &message.timestamp).hash(&mut hasher),
        Err(_) => entry.raw.hash(&mut hasher),
    }
    format!("{}-{:016x}", entry.index, hasher.finish())
}

/// What a call of `MarkRead` finds in the inbox: the entries that the call names by their ids, and
/// the number of all unread entries. An entry that has moved in the file since `ReadInbox` is found
/// by its content.
#[derive(Debug, Default)]
struct FoundEntries {
    by_id: BTreeMap<String, InboxEntry>,
    unread: usize,
}

impl FoundEntries {
    /// Checks one entry of the inbox. Counts the entry if it is unread, and keeps it if one of
    /// `ids` names it. The caller passes all entries of the inbox, the oldest first.
    fn add(&mut self, ids: &[String], entry: InboxEntry) {
        self.unread += usize::from(entry.unread().is_some());
        let own_id = message_id(&entry);
        let hash = |id: &str| id.split_once('-').map(|(_, hash)| hash.to_owned());
        for id in ids.iter().filter(|id| hash(id) == hash(&own_id)) {
            // An entry at its place is better than an earlier one with the same content.
            if *id == own_id || !self.by_id.contains_key(id) {
                self.by_id.insert(id.clone(), entry.clone());
            }
        }
    }

    /// Returns the entries with these ids, and how many other entries of the inbox are unread.
    ///
    /// # Errors
    ///
    /// `NotFound` if one of the ids belongs to no entry of the inbox.
    fn take(mut self, ids: &[String]) -> Result<(Vec<InboxEntry>, usize), ErrorReport> {
        let missing = |id: &&String| !self.by_id.contains_key(*id);
        if let Some(id) = ids.iter().find(missing) {
            let message = format!("cannot mark {id:?} read: no message of yours has that id");
            return Err(ErrorReport::new(ErrorKind::NotFound, message)
                .with_help("ReadInbox gives the id of each that is there"));
        }
        let marked: Vec<InboxEntry> = ids.iter().filter_map(|id| self.by_id.remove(id)).collect();
        let unread = marked.iter().filter(|entry| entry.unread().is_some());
        let indexes: BTreeSet<usize> = unread.map(|entry| entry.index).collect();
        Ok((marked, self.unread - indexes.len()))
    }
}

fn open_inbox(caller: &Caller, name: Option<&str>) -> Result<Inbox, ErrorReport> {
    let owner = match name {
        Some(name) => caller.resolve_member(name)?,
        None => caller.name().clone(),
    };
    AllowedCallers::MemberLeadOrPerson(owner.as_str()).check("read this inbox", caller.name())?;
    Ok(caller.team().inbox(&owner))
}

pub(super) struct MarkReadTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkReadInput {
    /// The ids of the messages that you have read, from ReadInbox.
    ids: Vec<String>,
}

impl ToolDefinition for MarkReadTool {
    const NAME: &'static str = "MarkRead";
    const TITLE: &'static str = "Mark messages read";
    const DESCRIPTION: &'static str = "Mark your messages as read, by their ids from ReadInbox, so that they are not shown \
        again. Mark only messages that you have handled. Answer a shutdown request with SendMessage instead.";
    const EFFECT: ToolEffect = ToolEffect::Idempotent;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = MarkReadInput;
    const OUTPUT: &'static [Property] =
        &[required_property("success", "boolean"), required_property("unread", "integer")];

    async fn call(context: &Arc<ServerContext>, input: MarkReadInput) -> Result<Value, ErrorReport> {
        run_blocking(context, move |context| mark_read(&context.caller()?, &input.ids)).await
    }
}

fn mark_read(caller: &Caller, ids: &[String]) -> Result<Value, ErrorReport> {
    let own: &MemberName = caller.name();
    let inbox = caller.team().inbox(own);
    let found = inbox.fold(|found: &mut FoundEntries, entry| found.add(ids, entry))?;
    // Counted without another read of the inbox, which could fail although the messages are marked.
    let (marked, unread) = found.take(ids)?;
    inbox.mark_read(&marked)?;
    Ok(json!({"success": true, "unread": unread}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(index: usize, text: &str) -> InboxEntry {
        let raw = json!({"from": "ann", "text": text, "timestamp": "t", "read": false});
        InboxEntry::parse(index, &raw.to_string())
    }

    #[test]
    fn message_id_follows_a_moved_message() {
        let before = [unread(0, "one"), unread(1, "two"), unread(2, "two")];
        let read = json!({"from": "ann", "text": "two", "timestamp": "t", "read": true});
        let after = [InboxEntry::parse(0, &read.to_string()), unread(1, "two")];
        let find = |id: String| {
            let (ids, mut found) = ([id], FoundEntries::default());
            after.iter().for_each(|entry| found.add(&ids, entry.clone()));
            found.take(&ids).ok().map(|(marked, unread)| (marked[0].index, unread))
        };
        assert_eq!(find(message_id(&before[0])), None);
        assert_eq!(find(message_id(&before[1])), Some((1, 0)));
        assert_eq!(find(message_id(&before[2])), Some((0, 1)));
        for wrong in ["0", "", "0-", "-", "x-0"] {
            assert_eq!(find(wrong.to_owned()), None, "{wrong}");
        }
    }
}
