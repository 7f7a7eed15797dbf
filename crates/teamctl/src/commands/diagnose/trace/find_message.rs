//! Which message is meant: in every inbox of the teams that may be meant, and in the journal of what was acknowledged,
//! for one that is in no inbox any more.

use crate::commands::diagnose::inbox_owners::inbox_owners;
use crate::commands::requests;
use crate::context::CommandContext;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::{InboxEntry, Message};
use protocol::name::AgentName;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeSet;
use store::{Team, message_id};

/// A message in one inbox.
pub(super) struct MessageCopy {
    pub(super) team: Team,
    pub(super) to: AgentName,
    pub(super) message: Message,
    /// Tells it from others, whoever spells it.
    pub(super) id: String,
    pub(super) location: CopyLocation,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyLocation {
    /// Its place in the inbox, from 0.
    InInbox { index: usize },
    /// It was there, and is no more.
    InJournalOnly,
}

impl MessageCopy {
    /// Ms since the epoch; 0 where it does not say.
    pub(super) fn sent_at(&self) -> u64 {
        parse_iso8601(&self.message.timestamp).unwrap_or(0)
    }
}

/// All copies of the one message that `wanted` names.
pub(super) fn find_copies(here: &CommandContext, wanted: &str) -> Result<Vec<MessageCopy>, ErrorReport> {
    let root = here.root()?;
    let mut all = Vec::new();
    for name in requests::selected_teams(here)? {
        copies_in_team(&root.team(&name)?, &mut all);
    }
    let id = match wanted {
        "last" => last_sent_by_caller(here, &all).ok_or_else(no_sent_message)?,
        wanted => unique_id(&all, wanted)?,
    };
    all.retain(|copy| copy.id == id);
    Ok(all)
}

/// An inbox that can't be read has its own cause, which `why` tells.
fn copies_in_team(team: &Team, all: &mut Vec<MessageCopy>) {
    let owners = inbox_owners(team);
    let mut there: BTreeSet<(String, String)> = BTreeSet::new();
    for owner in owners {
        let entries = team.inbox(&owner).read().unwrap_or_default();
        let stored: Vec<MessageCopy> =
            entries.iter().filter_map(|entry| stored(team, &owner, entry)).collect();
        there.extend(stored.iter().map(|copy| (owner.file_stem(), copy.id.clone())));
        all.extend(stored);
    }
    for (file, message) in team.acknowledged_messages().unwrap_or_default() {
        let stem = file.trim_end_matches(".json");
        let id = message_id(&message);
        if there.insert((stem.to_owned(), id.clone())) {
            let to = AgentName::new_unchecked(stem);
            all.push(MessageCopy {
                team: team.clone(),
                to,
                message,
                id,
                location: CopyLocation::InJournalOnly,
            });
        }
    }
}

fn stored(team: &Team, owner: &AgentName, entry: &InboxEntry) -> Option<MessageCopy> {
    let message = entry.message.as_ref().ok()?.clone();
    let (id, standing) = (message_id(&message), CopyLocation::InInbox { index: entry.index });
    Some(MessageCopy { team: team.clone(), to: owner.clone(), message, id, location: standing })
}

/// What the caller sent last; the lead may have sent it as the user.
fn last_sent_by_caller(here: &CommandContext, all: &[MessageCopy]) -> Option<String> {
    let me = here.caller_name();
    let mine =
        |copy: &&MessageCopy| copy.message.from == me.as_str() || me.is_lead() && copy.message.from == "user";
    all.iter().filter(mine).max_by_key(|copy| copy.sent_at()).map(|copy| copy.id.clone())
}

fn unique_id(all: &[MessageCopy], wanted: &str) -> Result<String, ErrorReport> {
    let begins =
        |copy: &&MessageCopy| !wanted.is_empty() && copy.id.starts_with(&wanted.to_ascii_lowercase());
    let ids: BTreeSet<&String> = all.iter().filter(begins).map(|copy| &copy.id).collect();
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

/// What the recipient has sent to the sender since; to a person that goes to the lead.
pub(super) fn replies_to(copy: &MessageCopy) -> Vec<InboxEntry> {
    let sender = AgentName::new_unchecked(&copy.message.from);
    let sender = if copy.message.from == "user" { AgentName::lead() } else { sender };
    let entries = copy.team.inbox(&sender).read().unwrap_or_default();
    let hers = |entry: &InboxEntry| {
        let message = entry.message.as_ref().ok();
        message.is_some_and(|message| copy.to.as_str().eq_ignore_ascii_case(&message.from))
    };
    entries.into_iter().filter(hers).collect()
}
