//! What the agent does, for whoever looks at its pane: its words as they come, its thoughts dimmed, a line for each
//! step of a tool and of its plan. No text of its own steers the terminal.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, PlanEntryStatus, SessionUpdate, ToolCallContent, ToolCallStatus,
};
use protocol::terminal::visible;
use std::collections::BTreeMap;
use std::io::Write;

/// Lines of a tool's output that are shown.
const MAX_TOOL_LINES: usize = 5;

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorState {
    LineStart,
    InText,
    InThoughts,
}

/// Whether colours mean something there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styling {
    Styled,
    Plain,
}

/// The pane.
#[derive(Debug)]
pub(crate) struct PanePrinter<W> {
    out: W,
    styling: Styling,
    cursor: CursorState,
    /// The titles of the tool calls of this turn.
    calls: BTreeMap<String, String>,
    /// The last that was shown.
    mode: Option<String>,
}

impl Styling {
    /// As people say it in the environment.
    pub(crate) fn from_env() -> Styling {
        let set = |name| std::env::var(name).is_ok_and(|value| !value.is_empty());
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if set("NO_COLOR") || dumb { Styling::Plain } else { Styling::Styled }
    }
}

impl<W: Write> PanePrinter<W> {
    pub(crate) fn new(out: W, paint: Styling) -> PanePrinter<W> {
        PanePrinter {
            out,
            styling: paint,
            cursor: CursorState::LineStart,
            calls: BTreeMap::new(),
            mode: None,
        }
    }

    /// What the agent said of its turn.
    pub(crate) fn print_update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.print_text(CursorState::InText, &chunk_text(chunk))
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.print_text(CursorState::InThoughts, &chunk_text(chunk))
            }
            SessionUpdate::ToolCall(call) => {
                self.calls.insert(call.tool_call_id.to_string(), call.title.clone());
                self.print_tool(&call.title, call.status, &call.content);
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let call = self.calls.entry(update.tool_call_id.to_string()).or_default();
                if let Some(title) = &update.fields.title {
                    call.clone_from(title);
                }
                let title = call.clone();
                if let Some(status) = update.fields.status {
                    self.print_tool(&title, status, update.fields.content.as_deref().unwrap_or_default());
                }
            }
            SessionUpdate::Plan(plan) => {
                let entries = plan.entries.iter();
                let entry = |mark: &str, text: &str| format!("  {mark} {text}");
                let lines: Vec<String> =
                    entries.map(|of| entry(plan_mark(&of.status), &of.content)).collect();
                self.print_line(&format!("plan\n{}", lines.join("\n")));
            }
            SessionUpdate::CurrentModeUpdate(mode) => self.print_mode(&mode.current_mode_id.to_string()),
            SessionUpdate::Notice(notice) => self.print_line(&notice.title),
            // For editors: commands, options, titles, costs.
            _ => {}
        }
    }

    /// It goes on in another mode; told once, though both sides tell of it.
    pub(crate) fn print_mode(&mut self, id: &str) {
        if self.mode.as_deref() != Some(id) {
            self.mode = Some(id.to_owned());
            self.print_line(&format!("mode: {id}"));
        }
    }

    /// The agent wants leave for a call, of which it may have said nothing before.
    pub(crate) fn print_question(&mut self, call: &str, title: &str, tool: &str) {
        self.calls.insert(call.to_owned(), title.to_owned());
        self.print_line(&format!("? {}: waits for permission ({tool})", title.replace('\n', " ")));
    }

    /// A line, at the beginning of one.
    pub(crate) fn print_line(&mut self, text: &str) {
        self.start_line();
        self.write_text(&format!("{}\n", sanitize(text)));
    }

    /// The turn is over: whatever comes now begins anew.
    pub(crate) fn end_turn(&mut self) {
        self.start_line();
        self.calls.clear();
    }

    fn start_line(&mut self) {
        if self.cursor != CursorState::LineStart {
            self.write_text("\n");
        }
        self.cursor = CursorState::LineStart;
    }

    fn print_text(&mut self, kind: CursorState, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.cursor != CursorState::LineStart && self.cursor != kind {
            self.start_line();
        }
        let (before, after) = match (kind, self.styling) {
            (CursorState::InThoughts, Styling::Styled) => ("\x1b[2m", "\x1b[0m"),
            _ => ("", ""),
        };
        let text = sanitize(text);
        self.write_text(&format!("{before}{text}{after}"));
        self.cursor = if text.ends_with('\n') { CursorState::LineStart } else { kind };
    }

    fn print_tool(&mut self, title: &str, status: ToolCallStatus, content: &[ToolCallContent]) {
        let title = title.replace('\n', " ");
        match status {
            ToolCallStatus::Completed => self.print_line(&format!("✓ {title}{}", tool_output(content))),
            ToolCallStatus::Failed => self.print_line(&format!("✗ {title}{}", tool_output(content))),
            ToolCallStatus::InProgress => self.print_line(&format!("● {title}")),
            _ => self.print_line(&format!("○ {title}")),
        }
    }

    /// A pane that is gone is the end of us by other ways.
    fn write_text(&mut self, text: &str) {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).ok();
    }
}

fn sanitize(text: &str) -> String {
    visible(&text.replace("\r\n", "\n"))
}

pub(crate) fn chunk_text(chunk: &ContentChunk) -> String {
    content_text(&chunk.content)
}

fn content_text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Image(_) => "[an image]".to_owned(),
        ContentBlock::Audio(_) => "[a sound]".to_owned(),
        _ => "[a file]".to_owned(),
    }
}

/// The first lines of what a tool gave, indented.
fn tool_output(content: &[ToolCallContent]) -> String {
    let pieces = content.iter().map(|content| match content {
        ToolCallContent::Content(content) => content_text(&content.content),
        ToolCallContent::Diff(diff) => format!("changed {}", diff.path.display()),
        _ => String::new(),
    });
    let text = pieces.collect::<Vec<_>>().join("\n");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut shown: String = lines.iter().take(MAX_TOOL_LINES).map(|line| format!("\n  {line}")).collect();
    if lines.len() > MAX_TOOL_LINES {
        shown.push_str(&format!("\n  … and {} lines more", lines.len() - MAX_TOOL_LINES));
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

    fn shown(paint: Styling, updates: &[Value]) -> String {
        let mut show = PanePrinter::new(Vec::new(), paint);
        updates.iter().for_each(|update| show.print_update(&serde_json::from_value(update.clone()).unwrap()));
        show.end_turn();
        String::from_utf8(show.out).unwrap()
    }

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn text_is_printed_and_thoughts_are_dimmed() {
        let updates = [
            chunk("agent_thought_chunk", "let me "),
            chunk("agent_thought_chunk", "see"),
            chunk("agent_message_chunk", "a\r\nb"),
            chunk("agent_message_chunk", "c"),
        ];
        assert_eq!(shown(Styling::Plain, &updates), "let me see\na\nbc\n");
        assert_eq!(shown(Styling::Styled, &updates), "\x1b[2mlet me \x1b[0m\x1b[2msee\x1b[0m\na\nbc\n");
    }

    #[test]
    fn tools_and_plans_have_their_own_lines() {
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
        assert_eq!(shown(Styling::Plain, &updates), expected);
    }

    #[test]
    fn mode_change_is_printed_once() {
        let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
        assert_eq!(shown(Styling::Plain, &[mode("a"), mode("a"), mode("b")]), "mode: a\nmode: b\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        let evil = "a\x1b]52;c;x\x07\u{9b}2J\rb";
        let call =
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": evil, "status": "in_progress"});
        let text = shown(Styling::Plain, &[chunk("agent_message_chunk", evil), call]);
        assert!(!text.contains(['\x1b', '\x07', '\u{9b}', '\r']), "{text:?}");
    }
}
