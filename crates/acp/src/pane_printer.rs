//! Prints into the pane what the agent does. The agent's text is printed as it arrives. Its
//! thoughts are dimmed. Each step of a tool call or of the agent's plan is one line. Control
//! characters in these texts are escaped, so that no text can control the terminal.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, PlanEntryStatus, SessionUpdate, ToolCallContent, ToolCallStatus,
};
use protocol::escape_control_chars::visible;
use std::collections::BTreeMap;
use std::io::Write;

/// How many lines of a tool's output are printed.
const MAX_TOOL_LINES: usize = 5;

/// Where the cursor is: at the start of a line, or after some of the agent's text or thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorState {
    LineStart,
    InText,
    InThoughts,
}

/// Whether the output has terminal styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styling {
    Styled,
    Plain,
}

/// Prints into the pane.
#[derive(Debug)]
pub(crate) struct PanePrinter<W> {
    out: W,
    styling: Styling,
    cursor: CursorState,
    /// Titles of this turn's tool calls, by call id.
    calls: BTreeMap<String, String>,
    /// The session mode that was printed last, by the program's id.
    mode: Option<String>,
}

impl Styling {
    /// `Plain` if `NO_COLOR` is set or `TERM` is `dumb`.
    pub(crate) fn from_env() -> Styling {
        let set = |name| std::env::var(name).is_ok_and(|value| !value.is_empty());
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if set("NO_COLOR") || dumb { Styling::Plain } else { Styling::Styled }
    }
}

impl<W: Write> PanePrinter<W> {
    pub(crate) fn new(out: W, styling: Styling) -> PanePrinter<W> {
        PanePrinter { out, styling, cursor: CursorState::LineStart, calls: BTreeMap::new(), mode: None }
    }

    /// Prints an update of the session.
    pub(crate) fn print_update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.print_text(CursorState::InText, &chunk_text(chunk));
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.print_text(CursorState::InThoughts, &chunk_text(chunk));
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
                    entries.map(|step| entry(plan_mark(&step.status), &step.content)).collect();
                self.print_line(&format!("plan\n{}", lines.join("\n")));
            }
            SessionUpdate::CurrentModeUpdate(mode) => self.print_mode(&mode.current_mode_id.to_string()),
            SessionUpdate::Notice(notice) => self.print_line(&notice.title),
            // The other updates are for editors: commands, options, titles, costs.
            _ => {}
        }
    }

    /// Prints the session mode, unless that mode was the last one printed. A mode change may be
    /// reported twice, by the program and by the driver, and is printed only once.
    pub(crate) fn print_mode(&mut self, id: &str) {
        if self.mode.as_deref() != Some(id) {
            self.mode = Some(id.to_owned());
            self.print_line(&format!("mode: {id}"));
        }
    }

    /// Prints that the tool call with the id `call` waits for permission. Also stores the
    /// call's `title` for later lines about the call, because the program may not have reported the
    /// call before.
    pub(crate) fn print_question(&mut self, call: &str, title: &str, tool: &str) {
        self.calls.insert(call.to_owned(), title.to_owned());
        self.print_line(&format!("? {}: waits for permission ({tool})", title.replace('\n', " ")));
    }

    /// Prints a text that begins on a new line.
    pub(crate) fn print_line(&mut self, text: &str) {
        self.start_line();
        self.write_text(&format!("{}\n", sanitize(text)));
    }

    /// Ends the output of a turn: the next output begins on a new line, and the printer
    /// forgets the titles of the turn's tool calls.
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

    /// Writes and flushes. Errors are ignored: the driver does not depend on its pane.
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

/// The first lines of a tool's output, indented.
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

    fn printed(styling: Styling, updates: &[Value]) -> String {
        let mut printer = PanePrinter::new(Vec::new(), styling);
        updates
            .iter()
            .for_each(|update| printer.print_update(&serde_json::from_value(update.clone()).unwrap()));
        printer.end_turn();
        String::from_utf8(printer.out).unwrap()
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
        assert_eq!(printed(Styling::Plain, &updates), "let me see\na\nbc\n");
        assert_eq!(printed(Styling::Styled, &updates), "\x1b[2mlet me \x1b[0m\x1b[2msee\x1b[0m\na\nbc\n");
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
        assert_eq!(printed(Styling::Plain, &updates), expected);
    }

    #[test]
    fn mode_change_is_printed_once() {
        let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
        assert_eq!(printed(Styling::Plain, &[mode("a"), mode("a"), mode("b")]), "mode: a\nmode: b\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        let hostile = "a\x1b]52;c;x\x07\u{9b}2J\rb";
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": hostile, "status": "in_progress"});
        let text = printed(Styling::Plain, &[chunk("agent_message_chunk", hostile), call]);
        assert!(!text.contains(['\x1b', '\x07', '\u{9b}', '\r']), "{text:?}");
    }
}
