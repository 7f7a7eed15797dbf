//! Finds a message by its id, in the inboxes of the selected teams. Messages that were removed from
//! their inbox are found in the journal, teamd's own record of all messages. Only matching messages
//! are kept in memory, because an inbox can be long.

use super::message_copy::{CopyLocation, MessageCopy};
use super::message_history::{FirstReply, MessageReply};
use crate::command_context::CommandContext;
use crate::commands::diagnose::list_inbox_owners::inbox_owners;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeSet;
use store::{Team, message_id};

/// Returns all copies of one message; a message to several members has one copy in each inbox.
/// `requested_id` is the id of the message or the beginning of the id. It can also be `last`, for
/// the last message that the caller sent.
pub(super) fn find_copies(
    context: &CommandContext,
    requested_id: &str,
) -> Result<Vec<MessageCopy>, ErrorReport> {
    let root = context.root()?;
    let teams = context.candidate_teams(&root)?;
    let teams = teams.iter().map(|name| root.team(name)).collect::<Result<Vec<Team>, _>>()?;
    let prefix = match requested_id {
        "last" => last_sent_by_caller(context, &teams).ok_or_else(no_sent_message)?,
        requested_id => requested_id.to_ascii_lowercase(),
    };
    let copies: Vec<MessageCopy> = teams.iter().flat_map(|team| copies_in_team(team, &prefix)).collect();
    check_unique(&copies, requested_id)?;
    Ok(copies)
}

/// The messages of the team whose id begins with `prefix`. Skips inboxes that cannot be read,
/// because the command `why` reports them.
fn copies_in_team(team: &Team, prefix: &str) -> Vec<MessageCopy> {
    let is_match = |message: &Message| !prefix.is_empty() && message_id(message).starts_with(prefix);
    let inbox_copies = inbox_owners(team).into_iter().flat_map(|owner| {
        let inbox_copies = team.inbox(&owner).fold(|copies: &mut Vec<MessageCopy>, entry| {
            let location = CopyLocation::InInbox { index: entry.index };
            let message = entry.message.ok().filter(is_match);
            copies.extend(message.map(|message| MessageCopy::new(team, owner.clone(), message, location)));
        });
        inbox_copies.unwrap_or_default()
    });
    let mut copies: Vec<MessageCopy> = inbox_copies.collect();
    let mut known_copies: BTreeSet<(String, String)> =
        copies.iter().map(|copy| (copy.to.file_stem(), copy.id.clone())).collect();
    let sent = team.acknowledged_messages().unwrap_or_default();
    for (file, message) in sent.into_iter().filter(|(_, message)| is_match(message)) {
        let stem = file.trim_end_matches(".json");
        let owner = MemberName::new_unchecked(stem);
        let copy = MessageCopy::new(team, owner, message, CopyLocation::InJournalOnly);
        if known_copies.insert((stem.to_owned(), copy.id.clone())) {
            copies.push(copy);
        }
    }
    copies
}

/// The time and the id of a message.
type SentMessage = (u64, String);

/// The id of the message that the caller sent last. Messages of `user` count as the lead's.
fn last_sent_by_caller(context: &CommandContext, teams: &[Team]) -> Option<String> {
    let caller = context.caller_name();
    let add = |last: &mut Option<SentMessage>, message: &Message| {
        let is_own = message.from == caller.as_str() || caller.is_lead() && message.from == "user";
        let sent_at = parse_iso8601(&message.timestamp).unwrap_or(0);
        if is_own && last.as_ref().is_none_or(|(time, _)| sent_at >= *time) {
            *last = Some((sent_at, message_id(message)));
        }
    };
    let last_in_team = |team: &Team| {
        let mut last = None;
        for (_, message) in team.acknowledged_messages().unwrap_or_default() {
            add(&mut last, &message);
        }
        let last_in_inbox = |owner| {
            let fold = |last: &mut Option<SentMessage>, entry: InboxEntry| {
                entry.message.iter().for_each(|message| add(last, message));
            };
            team.inbox(&owner).fold(fold).ok().flatten()
        };
        inbox_owners(team).into_iter().filter_map(last_in_inbox).chain(last).max_by_key(|(time, _)| *time)
    };
    teams.iter().filter_map(last_in_team).max_by_key(|(time, _)| *time).map(|(_, id)| id)
}

/// Checks that all copies are of one message.
fn check_unique(copies: &[MessageCopy], requested_id: &str) -> Result<(), ErrorReport> {
    let ids: BTreeSet<&String> = copies.iter().map(|copy| &copy.id).collect();
    match ids.len() {
        1 => Ok(()),
        0 => Err(ErrorReport::new(ErrorKind::NotFound, format!("cannot find the message {requested_id}"))
            .with_help(
                "an id is the message_id of: teamctl inbox NAME --json; your last: teamctl trace last",
            )),
        several => {
            let message = format!("cannot tell which message is meant: {several} begin with {requested_id}");
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("give more of its id"))
        }
    }
}

fn no_sent_message() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find your last message: you have sent none")
        .with_help("send one with: teamctl send NAME TEXT")
}

/// Returns the first reply of the recipient to the sender. A message from `user` was sent by a
/// person, who has no inbox: replies to it are in the inbox of the lead.
pub(super) fn first_reply(copy: &MessageCopy) -> Option<MessageReply> {
    let sender = match copy.message.from.as_str() {
        "user" => MemberName::lead(),
        name => MemberName::new_unchecked(name),
    };
    let add = |reply: &mut FirstReply, entry: InboxEntry| {
        let messages =
            entry.message.iter().filter(|message| copy.to.as_str().eq_ignore_ascii_case(&message.from));
        messages.for_each(|message| reply.add(copy, message));
    };
    copy.team.inbox(&sender).fold(add).unwrap_or_default().into_reply()
}
