//! Formats a list item as one line.

use crate::page_layout::fitting_bytes;
use crate::snapshot::{ListItem, ListItemRef, MemberItem, MessageItem, RequestItem, TaskItem, TaskState};
use crate::state::UiState;
use crate::terminal_capabilities::TerminalCapabilities;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Width of a member's name, in columns.
const NAME_WIDTH: usize = 12;
/// Width of a member's usage (`123.4k $12.34`), in columns.
const USAGE_WIDTH: usize = 13;

/// The list item as one line of the screen.
pub(super) fn item_row(state: &UiState, item: &dyn ListItem) -> Vec<Span<'static>> {
    let row = RowFormatter { state, capabilities: state.capabilities };
    match item.as_item() {
        ListItemRef::Member(member) => row.member_row(member),
        ListItemRef::Task(task) => row.task_row(task),
        ListItemRef::Message(message) => row.message_row(message),
        ListItemRef::Request(request) => row.request_row(request),
    }
}

struct RowFormatter<'a> {
    state: &'a UiState,
    capabilities: TerminalCapabilities,
}

impl RowFormatter<'_> {
    fn member_row(&self, member: &MemberItem) -> Vec<Span<'static>> {
        let unread = match member.unread {
            None => "?".to_owned(),
            Some(0) => String::new(),
            Some(unread) => format!("{unread} new"),
        };
        let task = usize::from(self.state.size.0).saturating_sub(44) * 2 / 5;
        let mut spans = vec![
            Span::styled(
                self.padded_cell(&member.name, NAME_WIDTH),
                self.capabilities.member_style(&member.color),
            ),
            Span::styled(self.padded_cell(&member.state, 15), self.state_style(&member.state)),
            Span::raw(self.padded_cell(&member.since, 5)),
            Span::styled(self.padded_cell(&unread, 7), Style::new().add_modifier(Modifier::BOLD)),
        ];
        if self.state.snapshot.members.iter().any(|member| !member.usage.is_empty()) {
            spans.push(Span::raw(self.padded_cell(&member.usage, USAGE_WIDTH)));
        }
        if !member.task.is_empty() {
            spans.push(Span::raw(self.padded_cell(&member.task, task)));
        }
        spans.push(self.colored_text(&member.last_line, Color::DarkGray));
        spans
    }

    fn task_row(&self, task: &TaskItem) -> Vec<Span<'static>> {
        let branch = match task.depth {
            0 => String::new(),
            depth => format!("{}{} ", "  ".repeat(depth - 1), self.capabilities.glyph("└", "`")),
        };
        let blockers = match task.waits_for.as_slice() {
            [] => String::new(),
            ids if task.depth == 0 => format!("  (waits for {})", join_ids(ids)),
            ids => format!("  (and for {})", join_ids(ids)),
        };
        let owner = task.owner.as_deref().unwrap_or("-");
        let id_width = 8 + 2 * task.depth.saturating_sub(1);
        vec![
            Span::raw(self.padded_cell(&format!("{branch}#{}", task.id), id_width)),
            Span::styled(self.padded_cell(task.state.label(), 7), self.task_style(task.state)),
            Span::styled(self.padded_cell(owner, NAME_WIDTH), self.member_style(owner)),
            Span::raw(self.capabilities.printable_line(&task.subject)),
            self.colored_text(&blockers, Color::DarkGray),
        ]
    }

    fn message_row(&self, message: &MessageItem) -> Vec<Span<'static>> {
        let arrow = self.capabilities.glyph("→", "->");
        let summary = self.capabilities.printable_line(&message.summary);
        let name = |name: &str| Span::styled(self.capabilities.printable_line(name), self.member_style(name));
        vec![
            Span::raw(self.padded_cell(&message.time_text, 5)),
            name(&message.from),
            Span::raw(format!(" {arrow} ")),
            name(&message.to),
            Span::raw(format!("{}: {summary}", repeat_text(message.count))),
        ]
    }

    fn request_row(&self, request: &RequestItem) -> Vec<Span<'static>> {
        vec![
            Span::raw(self.padded_cell(&request.since, 5)),
            Span::styled(self.padded_cell(&request.from, NAME_WIDTH), self.member_style(&request.from)),
            self.colored_text(&request.summary, Color::Yellow),
        ]
    }

    /// A text of another program in this colour, on one line.
    fn colored_text(&self, text: &str, color: Color) -> Span<'static> {
        Span::styled(self.capabilities.printable_line(text), self.capabilities.color_style(color))
    }

    /// The text in `width` columns, cut or padded, and a blank after it.
    fn padded_cell(&self, text: &str, width: usize) -> String {
        let mut text = self.capabilities.printable_line(text);
        let end = fitting_bytes(&text, width);
        if end < text.len() {
            text.truncate(fitting_bytes(&text, width.saturating_sub(1)));
            text.push_str(self.capabilities.glyph("…", "~"));
        }
        let pad = (width + 1).saturating_sub(Span::raw(&text).width());
        text + &" ".repeat(pad)
    }

    fn member_style(&self, name: &str) -> Style {
        self.capabilities.member_style(self.state.snapshot.member(name).map_or("", |member| &member.color))
    }

    fn state_style(&self, state: &str) -> Style {
        match state {
            state if state.contains('!') => self.capabilities.color_style(Color::Yellow),
            "failed" | "killed" | "unknown" | "disconnected" => self.capabilities.color_style(Color::Red),
            state if state.starts_with("active") => self.capabilities.color_style(Color::Green),
            _ => Style::new(),
        }
    }

    fn task_style(&self, state: TaskState) -> Style {
        match state {
            TaskState::Failed | TaskState::Abandoned => self.capabilities.color_style(Color::Red),
            TaskState::Working => self.capabilities.color_style(Color::Green),
            TaskState::Blocked | TaskState::Ready | TaskState::Done | TaskState::Unknown => Style::new(),
        }
    }
}

fn join_ids(ids: &[protocol::id::TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How often a message was repeated. Empty for a message that came once.
fn repeat_text(times: usize) -> String {
    if times > 1 { format!(" ({times} times)") } else { String::new() }
}
