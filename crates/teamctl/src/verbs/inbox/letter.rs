//! One entry of an inbox, for people.

use crate::output::{clean, paint};
use protocol::message::InboxEntry;
use view::text::message_text;

/// A head with sender, time and summary, and the text below it.
pub(super) fn sentence(entry: &InboxEntry) -> String {
    let Ok(message) = &entry.message else { return faulty(entry) };
    let sender = paint(message.color.as_deref().unwrap_or_default(), &clean(&one_line(&message.from)));
    let mark = if message.read { " " } else { "*" };
    let summary = message.summary.as_deref().map(|summary| format!("  {summary}")).unwrap_or_default();
    let text = message_text(&message.text);
    let head = clean(&one_line(&format!("{}{summary}", message.timestamp)));
    format!("{mark} {sender}  {head}\n{}", indented(&clean(&text)))
}

fn faulty(entry: &InboxEntry) -> String {
    let why = entry.message.as_ref().err().map(ToString::to_string).unwrap_or_default();
    clean(&format!("! entry {} is no message: {}", entry.index, one_line(&why)))
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_steer_the_terminal_or_pass_for_a_head() {
        let entry =
            InboxEntry::parse(0, r#"{"from":"a\u001b[2J","text":"x\n* boss","timestamp":"t\n* boss"}"#);
        let shown = sentence(&entry);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown}");
    }
}
