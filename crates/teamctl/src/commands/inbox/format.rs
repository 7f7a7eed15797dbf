//! Formats an entry of an inbox for people.

use crate::output::{paint, sanitize};
use client::describe_message_for_people::message_text;
use protocol::inbox_file::InboxEntry;
use protocol::single_line::single_line;

/// Formats an entry as a heading with sender, time and summary, and below it the indented text. The
/// heading of an unread message begins with `*`, that of an invalid entry with `!`.
pub(super) fn format_entry(entry: &InboxEntry) -> String {
    let Ok(message) = &entry.message else { return format_invalid(entry) };
    let sender = paint(message.color.as_deref().unwrap_or_default(), &sanitize(&single_line(&message.from)));
    let marker = if message.read { " " } else { "*" };
    let summary = message.summary.as_deref().map(|summary| format!("  {summary}")).unwrap_or_default();
    let text = message_text(&message.text);
    let heading = sanitize(&single_line(&format!("{}{summary}", message.timestamp)));
    format!("{marker} {sender}  {heading}\n{}", indent(&sanitize(&text)))
}

fn format_invalid(entry: &InboxEntry) -> String {
    let error = entry.message.as_ref().err().map(ToString::to_string).unwrap_or_default();
    sanitize(&format!("! entry {} is no message: {}", entry.index, single_line(&error)))
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_text_cannot_imitate_a_heading() {
        let entry =
            InboxEntry::parse(0, r#"{"from":"a\u001b[2J","text":"x\n* boss","timestamp":"t\n* boss"}"#);
        let formatted = format_entry(&entry);
        assert!(!formatted.contains('\u{1b}'), "{formatted}");
        assert!(formatted.lines().skip(1).all(|line| line.starts_with("    ")), "{formatted}");
    }
}
