//! What the agent does, for whoever looks at its pane: its words as they come, its thoughts dimmed, a line for each
//! step of a tool and of its plan. No text of its own steers the terminal.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, PlanEntryStatus, SessionUpdate, ToolCallContent, ToolCallStatus,
};
use protocol::terminal::visible;
use std::collections::BTreeMap;
use std::io::Write;

/// Lines of a tool's output that are shown.
const LINES: usize = 5;

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Beginning,
    Words,
    Thoughts,
}

/// Whether colours mean something there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Dimmed,
    Plain,
}

/// The pane.
#[derive(Debug)]
pub(crate) struct Show<W> {
    out: W,
    paint: Paint,
    at: At,
    /// The titles of the tool calls of this turn.
    calls: BTreeMap<String, String>,
    /// The last that was shown.
    mode: Option<String>,
}

impl Paint {
    /// As people say it in the environment.
    pub(crate) fn of_environment() -> Paint {
        let set = |name| std::env::var(name).is_ok_and(|value| !value.is_empty());
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if set("NO_COLOR") || dumb { Paint::Plain } else { Paint::Dimmed }
    }
}

impl<W: Write> Show<W> {
    pub(crate) fn new(out: W, paint: Paint) -> Show<W> {
        Show { out, paint, at: At::Beginning, calls: BTreeMap::new(), mode: None }
    }

    /// What the agent said of its turn.
    pub(crate) fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.words(At::Words, &text(chunk)),
            SessionUpdate::AgentThoughtChunk(chunk) => self.words(At::Thoughts, &text(chunk)),
            SessionUpdate::ToolCall(call) => {
                self.calls.insert(call.tool_call_id.to_string(), call.title.clone());
                self.tool(&call.title, call.status, &call.content);
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let call = self.calls.entry(update.tool_call_id.to_string()).or_default();
                if let Some(title) = &update.fields.title {
                    call.clone_from(title);
                }
                let title = call.clone();
                if let Some(status) = update.fields.status {
                    self.tool(&title, status, update.fields.content.as_deref().unwrap_or_default());
                }
            }
            SessionUpdate::Plan(plan) => {
                let entries = plan.entries.iter();
                let entry = |mark: &str, text: &str| format!("  {mark} {text}");
                let lines: Vec<String> =
                    entries.map(|of| entry(plan_mark(&of.status), &of.content)).collect();
                self.line(&format!("plan\n{}", lines.join("\n")));
            }
            SessionUpdate::CurrentModeUpdate(mode) => self.mode(&mode.current_mode_id.to_string()),
            SessionUpdate::Notice(notice) => self.line(&notice.title),
            // For editors: commands, options, titles, costs.
            _ => {}
        }
    }

    /// It goes on in another mode; told once, though both sides tell of it.
    pub(crate) fn mode(&mut self, id: &str) {
        if self.mode.as_deref() != Some(id) {
            self.mode = Some(id.to_owned());
            self.line(&format!("mode: {id}"));
        }
    }

    /// The agent wants leave for a call, of which it may have said nothing before.
    pub(crate) fn ask(&mut self, call: &str, title: &str, tool: &str) {
        self.calls.insert(call.to_owned(), title.to_owned());
        self.line(&format!("? {}: waits for permission ({tool})", title.replace('\n', " ")));
    }

    /// A line, at the beginning of one.
    pub(crate) fn line(&mut self, text: &str) {
        self.fresh();
        self.put(&format!("{}\n", clean(text)));
    }

    /// The turn is over: whatever comes now begins anew.
    pub(crate) fn end(&mut self) {
        self.fresh();
        self.calls.clear();
    }

    fn fresh(&mut self) {
        if self.at != At::Beginning {
            self.put("\n");
        }
        self.at = At::Beginning;
    }

    fn words(&mut self, kind: At, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.at != At::Beginning && self.at != kind {
            self.fresh();
        }
        let (before, after) = match (kind, self.paint) {
            (At::Thoughts, Paint::Dimmed) => ("\x1b[2m", "\x1b[0m"),
            _ => ("", ""),
        };
        let text = clean(text);
        self.put(&format!("{before}{text}{after}"));
        self.at = if text.ends_with('\n') { At::Beginning } else { kind };
    }

    fn tool(&mut self, title: &str, status: ToolCallStatus, content: &[ToolCallContent]) {
        let title = title.replace('\n', " ");
        match status {
            ToolCallStatus::Completed => self.line(&format!("✓ {title}{}", output(content))),
            ToolCallStatus::Failed => self.line(&format!("✗ {title}{}", output(content))),
            ToolCallStatus::InProgress => self.line(&format!("● {title}")),
            _ => self.line(&format!("○ {title}")),
        }
    }

    /// A pane that is gone is the end of us by other ways.
    fn put(&mut self, text: &str) {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).ok();
    }
}

fn clean(text: &str) -> String {
    visible(&text.replace("\r\n", "\n"))
}

pub(crate) fn text(chunk: &ContentChunk) -> String {
    words(&chunk.content)
}

fn words(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Image(_) => "[an image]".to_owned(),
        ContentBlock::Audio(_) => "[a sound]".to_owned(),
        _ => "[a file]".to_owned(),
    }
}

/// The first lines of what a tool gave, indented.
fn output(content: &[ToolCallContent]) -> String {
    let pieces = content.iter().map(|content| match content {
        ToolCallContent::Content(content) => words(&content.content),
        ToolCallContent::Diff(diff) => format!("changed {}", diff.path.display()),
        _ => String::new(),
    });
    let text = pieces.collect::<Vec<_>>().join("\n");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut shown: String = lines.iter().take(LINES).map(|line| format!("\n  {line}")).collect();
    if lines.len() > LINES {
        shown.push_str(&format!("\n  … and {} lines more", lines.len() - LINES));
    }
    shown
}

fn plan_mark(status: &PlanEntryStatus) -> &'static str {
    match status {
        PlanEntryStatus::Completed => "✓",
        PlanEntryStatus::InProgress => "●",
        _ => "○",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(paint: Paint, updates: &[Value]) -> String {
        let mut show = Show::new(Vec::new(), paint);
        updates.iter().for_each(|update| show.update(&serde_json::from_value(update.clone()).unwrap()));
        show.end();
        String::from_utf8(show.out).unwrap()
    }

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn words_come_as_they_are_and_thoughts_dimmed() {
        let updates = [
            chunk("agent_thought_chunk", "let me "),
            chunk("agent_thought_chunk", "see"),
            chunk("agent_message_chunk", "a\r\nb"),
            chunk("agent_message_chunk", "c"),
        ];
        assert_eq!(shown(Paint::Plain, &updates), "let me see\na\nbc\n");
        assert_eq!(shown(Paint::Dimmed, &updates), "\x1b[2mlet me \x1b[0m\x1b[2msee\x1b[0m\na\nbc\n");
    }

    #[test]
    fn tools_and_plans_have_lines_of_their_own() {
        let lines: Vec<String> = (1..=7).map(|n| n.to_string()).collect();
        let output = json!([{"type": "content", "content": {"type": "text", "text": lines.join("\n")}}]);
        let updates = [
            chunk("agent_message_chunk", "now"),
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "status": "pending"}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "content": output}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "2", "title": "x\ny", "status": "failed"}),
            json!({"sessionUpdate": "plan", "entries": [
                {"content": "one", "priority": "high", "status": "completed"},
                {"content": "two", "priority": "low", "status": "pending"}]}),
        ];
        let expected =
            "now\n○ ls\n✓ ls\n  1\n  2\n  3\n  4\n  5\n  … and 2 lines more\n✗ x y\nplan\n  ✓ one\n  ○ two\n";
        assert_eq!(shown(Paint::Plain, &updates), expected);
    }

    #[test]
    fn a_mode_is_told_once() {
        let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
        assert_eq!(shown(Paint::Plain, &[mode("a"), mode("a"), mode("b")]), "mode: a\nmode: b\n");
    }

    #[test]
    fn nothing_that_it_says_steers_the_terminal() {
        let evil = "a\x1b]52;c;x\x07\u{9b}2J\rb";
        let call =
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": evil, "status": "in_progress"});
        let text = shown(Paint::Plain, &[chunk("agent_message_chunk", evil), call]);
        assert!(!text.contains(['\x1b', '\x07', '\u{9b}', '\r']), "{text:?}");
    }
}
