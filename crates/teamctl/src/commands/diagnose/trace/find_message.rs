//! Finds a message by its id. Searches the inboxes of the selected teams, and the journal for
//! messages that were removed from their inbox.

use super::message_copy::{CopyLocation, MessageCopy};
use crate::commands::diagnose::list_inbox_owners::inbox_owners;
use crate::context::CommandContext;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use std::collections::BTreeSet;
use store::Team;

/// Returns all copies of one message; a message to several members has one copy in each inbox.
/// `wanted` is the id of the message or the beginning of the id. `wanted` can also be `last`, for
/// the last message that the caller sent.
pub(super) fn find_copies(context: &CommandContext, wanted: &str) -> Result<Vec<MessageCopy>, ErrorReport> {
    let root = context.root()?;
    let mut copies = Vec::new();
    for name in context.candidate_teams(&root)? {
        copies.extend(copies_in_team(&root.team(&name)?));
    }
    let id = match wanted {
        "last" => last_sent_by_caller(context, &copies).ok_or_else(no_sent_message)?,
        wanted => unique_id(&copies, wanted)?,
    };
    copies.retain(|copy| copy.id == id);
    Ok(copies)
}

/// All messages of the team. An inbox that cannot be read counts as empty; `why` reports it.
fn copies_in_team(team: &Team) -> Vec<MessageCopy> {
    let in_inboxes = inbox_owners(team).into_iter().flat_map(|owner| {
        let entries = team.inbox(&owner).read().unwrap_or_default();
        entries.into_iter().filter_map(move |entry| {
            let location = CopyLocation::InInbox { index: entry.index };
            Some(MessageCopy::new(team, owner.clone(), entry.message.ok()?, location))
        })
    });
    let mut copies: Vec<MessageCopy> = in_inboxes.collect();
    let mut found: BTreeSet<(String, String)> =
        copies.iter().map(|copy| (copy.to.file_stem(), copy.id.clone())).collect();
    for (file, message) in team.acknowledged_messages().unwrap_or_default() {
        let stem = file.trim_end_matches(".json");
        let owner = AgentName::new_unchecked(stem);
        let copy = MessageCopy::new(team, owner, message, CopyLocation::InJournalOnly);
        if found.insert((stem.to_owned(), copy.id.clone())) {
            copies.push(copy);
        }
    }
    copies
}

/// The id of the message that the caller sent last. Messages of `user` count as the lead's.
fn last_sent_by_caller(context: &CommandContext, copies: &[MessageCopy]) -> Option<String> {
    let caller = context.caller_name();
    let is_own = |copy: &&MessageCopy| {
        copy.message.from == caller.as_str() || caller.is_lead() && copy.message.from == "user"
    };
    copies.iter().filter(is_own).max_by_key(|copy| copy.sent_at()).map(|copy| copy.id.clone())
}

fn unique_id(copies: &[MessageCopy], wanted: &str) -> Result<String, ErrorReport> {
    let prefix = wanted.to_ascii_lowercase();
    let is_match = |copy: &&MessageCopy| !prefix.is_empty() && copy.id.starts_with(&prefix);
    let ids: BTreeSet<&String> = copies.iter().filter(is_match).map(|copy| &copy.id).collect();
    match ids.iter().collect::<Vec<_>>().as_slice() {
        [one] => Ok((**one).clone()),
        [] => Err(ErrorReport::new(ErrorKind::NotFound, format!("cannot find the message {wanted}"))
            .with_help(
                "an id is the message_id of: teamctl inbox NAME --json; your last: teamctl trace last",
            )),
        several => {
            let message =
                format!("cannot tell which message is meant: {} begin with {wanted}", several.len());
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("give more of its id"))
        }
    }
}

fn no_sent_message() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find your last message: you have sent none")
        .with_help("send one with: teamctl send NAME TEXT")
}

/// Returns the messages that may be replies to `copy`: those that its recipient has sent to its
/// sender. For a message from `user`, replies are in the inbox of the lead.
pub(super) fn replies_to(copy: &MessageCopy) -> Vec<InboxEntry> {
    let sender = match copy.message.from.as_str() {
        "user" => AgentName::lead(),
        name => AgentName::new_unchecked(name),
    };
    let entries = copy.team.inbox(&sender).read().unwrap_or_default();
    let is_from_recipient = |entry: &InboxEntry| {
        let message = entry.message.as_ref().ok();
        message.is_some_and(|message| copy.to.as_str().eq_ignore_ascii_case(&message.from))
    };
    entries.into_iter().filter(is_from_recipient).collect()
}
