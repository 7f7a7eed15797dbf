//! `trace`: the way of one message: who sent it when, where it is stored, when its recipient was given it, when that read
//! it, and what it said to it. What is missing in that chain is told with its probable cause, as `why` tells it.

mod find_message;
mod message_history;

use super::why::{Diagnosis, SystemSnapshot, diagnose};
use crate::context::CommandContext;
use crate::output::{self, sanitize};
use client::event_log::EventLog;
use client::text::short_duration;
use find_message::{CopyLocation, MessageCopy};
use message_history::{MessageHistory, MessageReply, ReadState};
use protocol::error::ErrorReport;
use protocol::timestamp::iso8601;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::now;

/// Say where a message is: stored, fed, read, answered; and what it waits for
///
/// MSG is an id as `send` and `inbox` print it with --json (message_id), or how it begins; `last` is the one that you
/// sent last. A message to several is told for each. Times other than that of sending are those at which teamd saw it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl trace last\n  teamctl trace 5c1f2a07\n  teamctl trace last --json"
)]
pub(crate) struct TraceArgs {
    /// Which message
    #[arg(value_name = "MSG")]
    message: String,
}

pub(crate) fn run(here: &CommandContext, args: &TraceArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("trace a message")?;
    let copies = find_message::find_copies(here, &args.message)?;
    let log = EventLog::read(&here.directories()?.state_dir);
    let mut traced: Vec<MessageTrace> =
        copies.into_iter().map(|copy| MessageTrace::new(copy, &log)).collect();
    if traced.iter().any(MessageTrace::is_pending) {
        let ground = SystemSnapshot::take(here, log)?;
        traced.iter_mut().try_for_each(|traced| traced.add_diagnosis(here, &ground))?;
    }
    if here.args.json {
        let id = traced.first().map(|traced| traced.copy.id.clone());
        let copies: Vec<Value> = traced.iter().map(MessageTrace::to_json).collect();
        output::print_result(here, &json!({"message_id": id, "copies": copies}), "");
    } else if !here.args.quiet {
        traced.iter().for_each(MessageTrace::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// One copy of the message, and its way.
struct MessageTrace {
    copy: MessageCopy,
    chain: MessageHistory,
    /// Why it goes no further.
    blocked_by: Option<Diagnosis>,
    now: u64,
}

impl MessageTrace {
    fn new(copy: MessageCopy, log: &EventLog) -> MessageTrace {
        let events = message_history::member_events(log, copy.team.name(), &copy.to);
        let chain = message_history::message_history(&copy, &events, &find_message::replies_to(&copy));
        MessageTrace { copy, chain, blocked_by: None, now: now() }
    }

    fn is_pending(&self) -> bool {
        matches!(self.copy.location, CopyLocation::InInbox { .. }) && self.chain.read == ReadState::Unread
    }

    fn add_diagnosis(&mut self, here: &CommandContext, ground: &SystemSnapshot) -> Result<(), ErrorReport> {
        if self.is_pending() {
            let MessageCopy { team, to, .. } = &self.copy;
            self.blocked_by = diagnose(here, ground, team, to)?.into_iter().next();
        }
        Ok(())
    }

    /// The keys are those of `--json`; times are ms since the epoch, null where nobody has told.
    fn to_json(&self) -> Value {
        let MessageTrace { copy, chain, blocked_by: waits, .. } = self;
        let index = match copy.location {
            CopyLocation::InInbox { index } => Some(index),
            CopyLocation::InJournalOnly => None,
        };
        json!({
            "team": copy.team.name(), "to": copy.to, "from": copy.message.from, "summary": copy.message.summary,
            "index": index, "sent": copy.sent_at(), "stored": chain.stored,
            "delivered": chain.delivered.as_ref().map(|(_, at)| at), "read": matches!(chain.read, ReadState::ReadAt(_)),
            "read_at": match chain.read { ReadState::ReadAt(at) => at, ReadState::Unread | ReadState::Removed => None },
            "reply": chain.reply.as_ref().map(MessageReply::to_json), "blocked_by": waits,
        })
    }

    fn print(&self) {
        let MessageTrace { copy, .. } = self;
        let about = copy.message.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
        let head = format!("{} to {}@{}{about}", &copy.id[..12], copy.to, copy.team.name());
        let lines = [
            ("sent", format!("{} by {}", self.time_text(copy.sent_at()), copy.message.from)),
            ("stored", self.stored_text()),
            ("fed", self.delivered_text()),
            ("read", self.read_text()),
            ("answered", self.reply_text()),
        ];
        output::print_line(&sanitize(&head.replace('\n', " ")));
        for (what, text) in lines {
            output::print_line(&sanitize(&format!("  {what:<9} {}", text.replace(['\n', '\r'], " "))));
        }
        self.blocked_by.iter().for_each(Diagnosis::print);
    }

    fn stored_text(&self) -> String {
        match (&self.copy.location, self.chain.stored) {
            (CopyLocation::InInbox { index }, Some(at)) => {
                format!("{} as number {index} of its inbox", self.time_text(at))
            }
            (CopyLocation::InInbox { index }, None) => {
                format!("as number {index} of its inbox; the event log does not tell when")
            }
            (CopyLocation::InJournalOnly, _) => {
                "it was acknowledged, and is in the inbox no more: another program took it out".to_owned()
            }
        }
    }

    fn delivered_text(&self) -> String {
        match &self.chain.delivered {
            Some((about, at)) if about.is_empty() => {
                format!("{} with the turn that began then", self.time_text(*at))
            }
            Some((about, at)) => format!("{} with the turn on {about}", self.time_text(*at)),
            None if self.chain.read == ReadState::Unread => {
                "not yet, as far as the event log tells".to_owned()
            }
            None if self.chain.read == ReadState::Removed => "the event log does not tell".to_owned(),
            None => "by itself, or the event log does not tell".to_owned(),
        }
    }

    fn read_text(&self) -> String {
        match self.chain.read {
            ReadState::ReadAt(Some(at)) => self.time_text(at).trim_end_matches(',').to_owned(),
            ReadState::ReadAt(None) => "yes; the event log does not tell when".to_owned(),
            ReadState::Unread => "not yet".to_owned(),
            ReadState::Removed => "not as far as the event log tells: it was taken out".to_owned(),
        }
    }

    fn reply_text(&self) -> String {
        match &self.chain.reply {
            Some(answer) => format!("{} {}", self.time_text(answer.at), answer.result_text(&self.copy)),
            None => "not yet".to_owned(),
        }
    }

    fn time_text(&self, at: u64) -> String {
        let whole = iso8601(at);
        let ago = short_duration(self.now.saturating_sub(at));
        format!("{} UTC, {ago} ago,", whole.get(..19).unwrap_or_default().replace('T', " "))
    }
}
