//! Formats a list item as one line.

use super::StyledLine;
use crate::page_layout::fitting_bytes;
use crate::snapshot::{ListItem, ListItemRef, MemberItem, MessageItem, RequestItem, TaskItem};
use crate::state::UiState;
use crate::terminal_capabilities::TerminalCapabilities;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Width of a member's name, in columns.
const NAME_WIDTH: usize = 12;
/// Width of a member's usage (`123.4k $12.34`), in columns.
const USAGE_WIDTH: usize = 13;

/// The line of a list item.
pub(super) fn item_row(state: &UiState, item: &dyn ListItem) -> StyledLine {
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
    fn member_row(&self, member: &MemberItem) -> StyledLine {
        let unread = match member.unread {
            None => "?".to_owned(),
            Some(0) => String::new(),
            Some(unread) => format!("{unread} new"),
        };
        let task = usize::from(self.state.size.0).saturating_sub(44) * 2 / 5;
        let mut spans = vec![
            (self.padded_cell(&member.name, NAME_WIDTH), self.capabilities.member_style(&member.color)),
            (self.padded_cell(&member.state, 15), self.state_style(&member.state)),
            (self.padded_cell(&member.since, 5), Style::new()),
            (self.padded_cell(&unread, 7), Style::new().add_modifier(Modifier::BOLD)),
        ];
        if self.state.snapshot.members.iter().any(|member| !member.usage.is_empty()) {
            spans.push((self.padded_cell(&member.usage, USAGE_WIDTH), Style::new()));
        }
        if !member.task.is_empty() {
            spans.push((self.padded_cell(&member.task, task), Style::new()));
        }
        spans.push((
            self.capabilities.printable_line(&member.last_line),
            self.capabilities.color_style(Color::DarkGray),
        ));
        spans
    }

    fn task_row(&self, task: &TaskItem) -> StyledLine {
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
        vec![
            (
                self.padded_cell(&format!("{branch}#{}", task.id), 8 + 2 * task.depth.saturating_sub(1)),
                Style::new(),
            ),
            (self.padded_cell(task.state, 7), self.state_style(task.state)),
            (self.padded_cell(owner, NAME_WIDTH), self.member_style(owner)),
            (self.capabilities.printable_line(&task.subject), Style::new()),
            (blockers, self.capabilities.color_style(Color::DarkGray)),
        ]
    }

    fn message_row(&self, message: &MessageItem) -> StyledLine {
        let arrow = self.capabilities.glyph("→", "->");
        vec![
            (self.padded_cell(&message.time_text, 5), Style::new()),
            (self.capabilities.printable_line(&message.from), self.member_style(&message.from)),
            (format!(" {arrow} "), Style::new()),
            (self.capabilities.printable_line(&message.to), self.member_style(&message.to)),
            (
                format!(
                    "{}: {}",
                    repeat_text(message.count),
                    self.capabilities.printable_line(&message.summary)
                ),
                Style::new(),
            ),
        ]
    }

    fn request_row(&self, request: &RequestItem) -> StyledLine {
        vec![
            (self.padded_cell(&request.since, 5), Style::new()),
            (self.padded_cell(&request.from, NAME_WIDTH), self.member_style(&request.from)),
            (
                self.capabilities.printable_line(&request.summary),
                self.capabilities.color_style(Color::Yellow),
            ),
        ]
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
            "failed" | "killed" | "left" | "unknown" => self.capabilities.color_style(Color::Red),
            state if state.starts_with("active") || state == "working" => {
                self.capabilities.color_style(Color::Green)
            }
            _ => Style::new(),
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
