//! `trace`: shows how far a message got: sent, stored, delivered, read, answered. For an unread
//! message it also shows the probable cause, as `why` finds it.

mod find_message;
mod message_copy;
mod message_history;

use super::why_no_progress::{Diagnosis, SystemSnapshot, diagnose};
use crate::command_context::CommandContext;
use crate::output::{self, sanitize};
use client::read_event_log::EventLog;
use client::short_duration::short_duration;
use message_copy::{CopyLocation, MessageCopy};
use message_history::{MessageHistory, MessageReply, ReadState};
use protocol::error_kind_and_report::ErrorReport;
use protocol::timestamp::iso8601;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::now;

/// Show how far a message got
///
/// Example: teamctl trace last
///
/// A message is stored, delivered, read and answered. If the recipient is on another host, the
/// message also arrives there. A message to several members is shown for each of them. The times
/// are those at which teamd noticed each step; only the time of sending comes from the sender.
///
/// `send --json` and `inbox --json` print the id of a message as `message_id`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl trace 5c1f2a07")]
pub(crate) struct TraceArgs {
    /// Id of the message, or its beginning; `last` is the last message that you sent
    #[arg(value_name = "MSG")]
    message: String,
}

pub(crate) fn run(context: &CommandContext, args: &TraceArgs) -> Result<ExitCode, ErrorReport> {
    let copies = find_message::find_copies(context, &args.message)?;
    let log = EventLog::read(&context.directories()?.state_dir);
    let mut traces: Vec<MessageTrace> =
        copies.into_iter().map(|copy| MessageTrace::new(copy, &log)).collect();
    if traces.iter().any(MessageTrace::is_pending) {
        let snapshot = SystemSnapshot::take(context, log)?;
        traces.iter_mut().try_for_each(|trace| trace.add_diagnosis(context, &snapshot))?;
    }
    if context.args.json {
        let id = traces.first().map(|trace| trace.copy.id.clone());
        let copies: Vec<Value> = traces.iter().map(MessageTrace::to_json).collect();
        output::print_result(context, &json!({"message_id": id, "copies": copies}), "");
    } else if !context.args.quiet {
        traces.iter().for_each(MessageTrace::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// One copy of the message and what happened to it.
struct MessageTrace {
    copy: MessageCopy,
    history: MessageHistory,
    /// Why the message is unread. `None` if it was read or taken out.
    blocked_by: Option<Diagnosis>,
    now: u64,
}

impl MessageTrace {
    fn new(copy: MessageCopy, log: &EventLog) -> MessageTrace {
        let events = message_history::member_events(log, copy.team.name(), &copy.to);
        let history = MessageHistory::new(&copy, &events, find_message::first_reply(&copy));
        MessageTrace { copy, history, blocked_by: None, now: now() }
    }

    fn is_pending(&self) -> bool {
        matches!(self.copy.location, CopyLocation::InInbox { .. }) && self.history.read == ReadState::Unread
    }

    fn add_diagnosis(
        &mut self,
        context: &CommandContext,
        snapshot: &SystemSnapshot,
    ) -> Result<(), ErrorReport> {
        if self.is_pending() {
            let MessageCopy { team, to, .. } = &self.copy;
            self.blocked_by = diagnose(context, snapshot, team, to)?.into_iter().next();
        }
        Ok(())
    }

    /// The keys are those of `--json`. Times are in ms since the epoch, and null if unknown.
    fn to_json(&self) -> Value {
        let MessageTrace { copy, history, blocked_by, .. } = self;
        let index = match copy.location {
            CopyLocation::InInbox { index } => Some(index),
            CopyLocation::InJournalOnly => None,
        };
        let read_at = match history.read {
            ReadState::ReadAt(at) => at,
            ReadState::Unread | ReadState::Removed => None,
        };
        json!({
            "team": copy.team.name(), "to": copy.to, "from": copy.message.from, "summary": copy.message.summary,
            "index": index, "sent": copy.sent_at(), "stored": history.stored,
            "host": self.host(), "stored_on_host": history.arrival.as_ref().map(|arrival| arrival.at),
            "delivered": history.delivered.as_ref().map(|turn| turn.started_at),
            "read": matches!(history.read, ReadState::ReadAt(_)), "read_at": read_at,
            "reply": history.reply.as_ref().map(MessageReply::to_json), "blocked_by": blocked_by,
        })
    }

    fn print(&self) {
        let MessageTrace { copy, .. } = self;
        let summary =
            copy.message.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
        let heading = format!("{} to {}@{}{summary}", &copy.id[..12], copy.to, copy.team.name());
        let lines = [
            ("sent", Some(format!("{} by {}", self.time_text(copy.sent_at()), copy.message.from))),
            ("stored", Some(self.stored_text())),
            ("arrived", self.arrived_text()),
            ("delivered", Some(self.delivered_text())),
            ("read", Some(self.read_text())),
            ("reply", Some(self.reply_text())),
        ];
        output::print_line(&sanitize(&heading.replace('\n', " ")));
        for (step, text) in lines.into_iter().filter_map(|(step, text)| Some((step, text?))) {
            output::print_line(&sanitize(&format!("  {step:<9} {}", text.replace(['\n', '\r'], " "))));
        }
        self.blocked_by.iter().for_each(Diagnosis::print);
    }

    fn stored_text(&self) -> String {
        match (&self.copy.location, self.history.stored) {
            (CopyLocation::InInbox { index }, Some(at)) => {
                format!("{} as number {index} of its inbox", self.time_text(at))
            }
            (CopyLocation::InInbox { index }, None) => {
                format!("as number {index} of its inbox; the event log does not say when")
            }
            (CopyLocation::InJournalOnly, _) => {
                "it was acknowledged, and is in the inbox no more: another program took it out".to_owned()
            }
        }
    }

    /// The host of the recipient. `None` if that is this host.
    fn host(&self) -> Option<String> {
        let arrival = self.history.arrival.as_ref().map(|arrival| arrival.host.clone());
        arrival.or_else(|| self.copy.team.config().ok()?.member(&self.copy.to)?.host.clone())
    }

    /// When the message was stored on the recipient's host. `None` if that is this host.
    fn arrived_text(&self) -> Option<String> {
        let host = self.host()?;
        Some(match &self.history.arrival {
            Some(arrival) => format!("{} on {host}", self.time_text(arrival.at)),
            None => format!("not yet on {host}, as far as the event log says"),
        })
    }

    fn delivered_text(&self) -> String {
        let text = match (&self.history.delivered, self.history.read) {
            (Some(turn), _) => {
                let time = self.time_text(turn.started_at);
                return match turn.subject.as_str() {
                    "" => format!("{time} with the turn that began then"),
                    subject => format!("{time} with the turn on {subject}"),
                };
            }
            (None, ReadState::Unread) => "not yet, as far as the event log says",
            (None, ReadState::Removed) => "the event log does not say",
            (None, ReadState::ReadAt(_)) => "by itself, or the event log does not say",
        };
        text.to_owned()
    }

    fn read_text(&self) -> String {
        let text = match self.history.read {
            ReadState::ReadAt(Some(at)) => return self.time_text(at).trim_end_matches(',').to_owned(),
            ReadState::ReadAt(None) => "yes; the event log does not say when",
            ReadState::Unread => "not yet",
            ReadState::Removed => "not as far as the event log says: it was taken out",
        };
        text.to_owned()
    }

    fn reply_text(&self) -> String {
        match &self.history.reply {
            Some(reply) => format!("{} {}", self.time_text(reply.at), reply.result_text(&self.copy)),
            None => "not yet".to_owned(),
        }
    }

    /// `2026-02-13 05:10:01 UTC, 3m ago,`.
    fn time_text(&self, at: u64) -> String {
        let timestamp = iso8601(at);
        let age = short_duration(self.now.saturating_sub(at));
        format!("{} UTC, {age} ago,", timestamp.get(..19).unwrap_or_default().replace('T', " "))
    }
}
