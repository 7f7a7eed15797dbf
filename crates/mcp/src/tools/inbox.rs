//! `ReadInbox` and `MarkRead`: for agents that nobody hands their messages to. Reading changes nothing; a message is
//! marked read by whoever has got it, so that none is lost with an answer that never came.

use super::schema::{Property, always};
use super::{Described, Effect, at_files};
use crate::seat::Seat;
use protocol::fault::{Fault, Kind};
use protocol::message::Entry;
use protocol::name::AgentName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Caller, Inbox, lead_only};

/// As many messages as are shown where nobody says how many.
const USUAL: usize = 50;

/// The tool.
pub(super) struct ReadInbox;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Which {
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

impl Described for ReadInbox {
    const NAME: &'static str = "ReadInbox";
    const TITLE: &'static str = "Read messages";
    const TEXT: &'static str = "Read the messages to you that are unread. Only needed if your program does not hand \
        them to you by itself. They stay unread until you name their index in MarkRead.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Which;
    const OUTPUT: &'static [Property] = &[always("messages", "array"), always("unread", "integer")];

    async fn call(seat: &Arc<Seat>, input: Which) -> Result<Value, Fault> {
        at_files(seat, move |seat| read(&seat.caller()?, &input)).await
    }
}

fn read(caller: &Caller, input: &Which) -> Result<Value, Fault> {
    let entries = inbox(caller, input.name.as_deref())?.read()?;
    let unread = entries.iter().filter(|entry| entry.unread().is_some()).count();
    let wanted = entries.iter().filter(|entry| input.all == Some(true) || entry.unread().is_some());
    let wanted: Vec<Value> = wanted.map(Entry::with_kind).collect();
    let surplus = wanted.len().saturating_sub(input.limit.unwrap_or(USUAL));
    Ok(json!({"messages": &wanted[surplus..], "unread": unread}))
}

fn inbox(caller: &Caller, name: Option<&str>) -> Result<Inbox, Fault> {
    let owner = match name {
        Some(name) => caller.member(name)?,
        None => caller.me().clone(),
    };
    if owner != *caller.me() {
        lead_only(caller.me(), &format!("read the inbox of {owner}"))?;
    }
    Ok(caller.team().inbox(&owner))
}

/// The tool.
pub(super) struct MarkRead;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Indexes {
    /// The index of each message that you have read, as ReadInbox gives it.
    indexes: Vec<usize>,
}

impl Described for MarkRead {
    const NAME: &'static str = "MarkRead";
    const TITLE: &'static str = "Mark messages read";
    const TEXT: &'static str = "Mark messages to you read, by the index that ReadInbox gave, so that they are not \
        shown again. Only those that you have dealt with. A shutdown request is answered with SendMessage instead.";
    const EFFECT: Effect = Effect::Sets;
    type Input = Indexes;
    const OUTPUT: &'static [Property] = &[always("success", "boolean"), always("unread", "integer")];

    async fn call(seat: &Arc<Seat>, input: Indexes) -> Result<Value, Fault> {
        at_files(seat, move |seat| mark(&seat.caller()?, &input.indexes)).await
    }
}

fn mark(caller: &Caller, indexes: &[usize]) -> Result<Value, Fault> {
    let own: &AgentName = caller.me();
    let inbox = caller.team().inbox(own);
    let entries = inbox.read()?;
    let of = |index: &usize| {
        let missing = || {
            let message =
                format!("cannot mark message {index} read: there are {}, counted from 0", entries.len());
            Fault::new(Kind::NotFound, message).hinted("ReadInbox gives the index of each")
        };
        entries.get(*index).cloned().ok_or_else(missing)
    };
    inbox.mark_read(&indexes.iter().map(of).collect::<Result<Vec<_>, _>>()?)?;
    let unread = inbox.read()?.iter().filter(|entry| entry.unread().is_some()).count();
    Ok(json!({"success": true, "unread": unread}))
}
