//! The record of a team as lines of text, each with the time since the start.

use client::describe_message_for_people::message_text;
use client::format_event_line::event_text_in_team;
use client::read_team_record::{TeamRecord, offset_text};
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_file::Message;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;
use protocol::team_record_line::RecordEntry;
use protocol::timestamp::iso8601;
use std::fmt;

/// A line of text.
pub(super) struct TextLine {
    /// Milliseconds after the start of the record.
    pub(super) offset: u64,
    pub(super) text: String,
}

impl fmt::Display for TextLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}  {}", offset_text(self.offset), self.offset % 1_000, self.text)
    }
}

/// The lines of text of a record. The first says when the record was made.
pub(super) fn text_lines(record: &TeamRecord) -> Vec<TextLine> {
    let started_at = iso8601(record.started_at);
    let started_at = started_at.get(..19).unwrap_or_default().replace('T', " ");
    let length = offset_text(record.length());
    let text = format!("the record of {} begins at {started_at} UTC, {length} long", record.team);
    let mut lines = vec![TextLine { offset: 0, text }];
    let entries = record.lines.iter();
    lines.extend(
        entries.filter_map(|line| Some(TextLine { offset: line.offset, text: entry_text(&line.entry)? })),
    );
    lines
}

/// The text for an entry. `None` if the entry has no line of its own.
fn entry_text(entry: &RecordEntry) -> Option<String> {
    match entry {
        RecordEntry::Message { inbox, message, .. } => Some(message_line(inbox, message)),
        RecordEntry::Event { event } => event_line(event),
        RecordEntry::Start { .. }
        | RecordEntry::Call { .. }
        | RecordEntry::Report { .. }
        | RecordEntry::Task { .. }
        | RecordEntry::TaskRemoved { .. }
        | RecordEntry::Output { .. } => None,
    }
}

fn event_line(event: &Event) -> Option<String> {
    let is_of_message = matches!(event.kind, EventKind::MessageStored { .. } | EventKind::MessageRead { .. });
    (!is_of_message).then(|| single_line(&event_text_in_team(event)))
}

/// Formats a message as one line: its summary or, if it has no summary, the first line of its text.
/// A sign `…` at the end says that the text is longer.
fn message_line(inbox: &MemberName, message: &Message) -> String {
    let text = message_text(&message.text);
    let text = text.trim();
    let first = message.summary.as_deref().unwrap_or_else(|| text.lines().next().unwrap_or_default());
    let more = if first == text { "" } else { " …" };
    format!("{} -> {inbox}: {}{more}", single_line(&message.from), single_line(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_and_member_names::TeamName;

    #[test]
    fn messages_and_events_are_printed_once() {
        let line =
            |seconds: u32, rest: &str| format!(r#"{{"time":"2026-11-28T14:00:{seconds:02}.000Z",{rest}}}"#);
        let event = |rest: &str| {
            format!(r#""kind":"event","event":{{"time":"2026-11-28T14:00:00.000Z","team":"survey",{rest}}}"#)
        };
        let message = |text: &str, more: &str| {
            let message = format!(r#"{{"from":"ann","text":"{text}","timestamp":"","read":false{more}}}"#);
            format!(r#""kind":"message","inbox":"team-lead","index":0,"message":{message}"#)
        };
        let record = [
            line(0, r#""kind":"start","version":1,"team":"survey""#),
            line(1, &event(r#""member":"ann","event":"member_active","summary":"task 1""#)),
            line(2, &message(r"done\nwith it", "")),
            line(
                2,
                &event(
                    r#""member":"team-lead","event":"message_stored","index":0,"from":"ann","kind":"text""#,
                ),
            ),
            line(3, &message("done", r#","summary":"done""#)),
            line(9, &event(r#""event":"task_created","task":"1","subject":"count""#)),
        ];
        let record = TeamRecord::parse(TeamName::parse("survey").unwrap(), &(record.join("\n") + "\n"));
        let lines: Vec<String> = text_lines(&record).iter().map(ToString::to_string).collect();
        let expected = [
            "0:00:00.000  the record of survey begins at 2026-11-28 14:00:00 UTC, 0:00:09 long",
            "0:00:01.000  ann active: task 1",
            "0:00:02.000  ann -> team-lead: done …",
            "0:00:03.000  ann -> team-lead: done",
            "0:00:09.000  task 1 created: count",
        ];
        assert_eq!(lines, expected);
    }
}
