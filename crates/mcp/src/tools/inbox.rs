//! `ReadInbox` and `MarkRead`: for agents that nobody hands their messages to. Reading changes nothing; a message is
//! marked read by whoever has got it, so that none is lost with an answer that never came.

use super::schema::{Property, required_property};
use super::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{Caller, Inbox, require_lead};

/// As many messages as are shown where nobody says how many.
const DEFAULT_LIMIT: usize = 50;

/// The tool.
pub(super) struct ReadInboxTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInboxInput {
    /// Also what is read already.
    #[serde(default)]
    all: Option<bool>,
    /// The last so many; 50 where it is left out.
    #[serde(default)]
    limit: Option<usize>,
    /// A member's, for the lead; your own where it is left out.
    #[serde(default)]
    name: Option<String>,
}

impl ToolDefinition for ReadInboxTool {
    const NAME: &'static str = "ReadInbox";
    const TITLE: &'static str = "Read messages";
    const DESCRIPTION: &'static str = "Read the messages to you that are unread. Only needed if your program does not hand \
        them to you by itself. They stay unread until you name their id in MarkRead.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    type Input = ReadInboxInput;
    const OUTPUT: &'static [Property] =
        &[required_property("messages", "array"), required_property("unread", "integer")];

    async fn call(seat: &Arc<ServerContext>, input: ReadInboxInput) -> Result<Value, ErrorReport> {
        run_blocking(seat, move |seat| read_inbox(&seat.caller()?, &input)).await
    }
}

fn read_inbox(caller: &Caller, input: &ReadInboxInput) -> Result<Value, ErrorReport> {
    let inbox = open_inbox(caller, input.name.as_deref())?;
    let entries = if input.all == Some(true) { inbox.read()? } else { inbox.read_unread()? };
    let unread = entries.iter().filter(|entry| entry.unread().is_some()).count();
    let wanted: Vec<Value> = entries.iter().map(entry_json).collect();
    let surplus = wanted.len().saturating_sub(input.limit.unwrap_or(DEFAULT_LIMIT));
    Ok(json!({"messages": &wanted[surplus..], "unread": unread}))
}

fn entry_json(entry: &InboxEntry) -> Value {
    let mut object = entry.to_json();
    object["id"] = json!(message_id(entry));
    object
}

/// By which a message is named: its place, and what it says. Others may take entries out of the file between a look and
/// a mark, so a place alone would name another message then. Whether it is read does not count.
fn message_id(entry: &InboxEntry) -> String {
    let mut said = DefaultHasher::new();
    match &entry.message {
        Ok(message) => (&message.from, &message.text, &message.timestamp).hash(&mut said),
        Err(_) => entry.raw.hash(&mut said),
    }
    format!("{}-{:016x}", entry.index, said.finish())
}

/// The message of that id: where it was, else where it is now.
fn find_by_id<'a>(entries: &'a [InboxEntry], wanted: &str) -> Option<&'a InboxEntry> {
    let said = |id: &str| id.split_once('-').map(|(_, said)| said.to_owned());
    let same = |entry: &&InboxEntry| said(wanted).is_some() && said(&message_id(entry)) == said(wanted);
    entries.iter().find(|entry| message_id(entry) == wanted).or_else(|| entries.iter().find(same))
}

fn open_inbox(caller: &Caller, name: Option<&str>) -> Result<Inbox, ErrorReport> {
    let owner = match name {
        Some(name) => caller.resolve_member(name)?,
        None => caller.name().clone(),
    };
    if owner != *caller.name() {
        require_lead(caller.name(), &format!("read the inbox of {owner}"))?;
    }
    Ok(caller.team().inbox(&owner))
}

/// The tool.
pub(super) struct MarkReadTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkReadInput {
    /// The id of each message that you have read, as ReadInbox gives it.
    ids: Vec<String>,
}

impl ToolDefinition for MarkReadTool {
    const NAME: &'static str = "MarkRead";
    const TITLE: &'static str = "Mark messages read";
    const DESCRIPTION: &'static str = "Mark messages to you read, by the id that ReadInbox gave, so that they are not \
        shown again. Only those that you have dealt with. A shutdown request is answered with SendMessage instead.";
    const EFFECT: ToolEffect = ToolEffect::Idempotent;
    type Input = MarkReadInput;
    const OUTPUT: &'static [Property] =
        &[required_property("success", "boolean"), required_property("unread", "integer")];

    async fn call(seat: &Arc<ServerContext>, input: MarkReadInput) -> Result<Value, ErrorReport> {
        run_blocking(seat, move |seat| mark_read(&seat.caller()?, &input.ids)).await
    }
}

fn mark_read(caller: &Caller, ids: &[String]) -> Result<Value, ErrorReport> {
    let own: &AgentName = caller.name();
    let inbox = caller.team().inbox(own);
    let entries = inbox.read()?;
    let of = |id: &String| {
        let missing = || {
            let message = format!("cannot mark {id:?} read: no message of yours has that id");
            ErrorReport::new(ErrorKind::NotFound, message)
                .with_help("ReadInbox gives the id of each that is there")
        };
        find_by_id(&entries, id).cloned().ok_or_else(missing)
    };
    let marked = ids.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    inbox.mark_read(&marked)?;
    // Not by another look, which can fail where all is done.
    let marked: BTreeSet<usize> = marked.iter().map(|entry| entry.index).collect();
    let unread = entries.iter().filter(|it| it.unread().is_some() && !marked.contains(&it.index)).count();
    Ok(json!({"success": true, "unread": unread}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: usize, text: &str, read: bool) -> InboxEntry {
        let raw = json!({"from": "ann", "text": text, "timestamp": "t", "read": read});
        InboxEntry::parse(index, &raw.to_string())
    }

    #[test]
    fn message_id_follows_a_moved_message() {
        let before = [entry(0, "one", false), entry(1, "two", false), entry(2, "two", false)];
        let after = [entry(0, "two", true), entry(1, "two", false)];
        assert_eq!(find_by_id(&after, &message_id(&before[0])), None);
        assert_eq!(find_by_id(&after, &message_id(&before[1])), Some(&after[1]));
        assert_eq!(find_by_id(&after, &message_id(&before[2])).map(|entry| entry.index), Some(0));
        for wrong in ["0", "", "0-", "-", "x-0"] {
            assert_eq!(find_by_id(&after, wrong), None, "{wrong}");
        }
    }
}
