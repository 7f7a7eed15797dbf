//! Formats a list item as one line, and names the columns of these lines.

use crate::detail_page_layout::fitting_bytes;
use crate::panel_layout::PanelLayout;
use crate::team_snapshot_for_screen::{
    ListItem, ListItemRef, MemberItem, MessageItem, Panel, RequestItem, TaskItem, TaskState,
};
use crate::terminal_capabilities::TerminalCapabilities;
use crate::ui_state::UiState;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

// The widths of columns, without the blank after each column.

/// Width of a column with members' names. The first column of each panel is at least this wide, so
/// that the panel's title does not cover the headings of the next columns.
const NAME_WIDTH: usize = 12;
/// Width of a member's state, such as `active!shutdown`.
const STATE_WIDTH: usize = 15;
/// Width of a clock time.
const TIME_WIDTH: usize = 5;
/// Width of a number of unread messages (`123 new`).
const UNREAD_WIDTH: usize = 7;
/// Width of a member's usage (`123.4k $12.34`).
const USAGE_WIDTH: usize = 13;
/// Smallest width of a member's task. On a screen where less is left, the task has no column.
const MIN_TASK_WIDTH: usize = 4;
/// Width of a task's state.
const TASK_STATE_WIDTH: usize = 7;

/// The list item as one row of the panel.
pub(super) fn item_row(state: &UiState, layout: &PanelLayout, item: &dyn ListItem) -> Vec<Span<'static>> {
    let row = RowFormatter::new(state, layout);
    match item.as_item() {
        ListItemRef::Member(member) => row.member_row(member),
        ListItemRef::Task(task) => row.task_row(task),
        ListItemRef::Message(message) => row.message_row(message),
        ListItemRef::Request(request) => row.request_row(request),
    }
}

/// The headings of the panel's columns, each with the width of its column. The last column takes
/// the remaining width of the panel.
pub(super) fn column_headings(state: &UiState, layout: &PanelLayout) -> Vec<(&'static str, usize)> {
    let row = RowFormatter::new(state, layout);
    let rest = row.width;
    match layout.panel {
        Panel::Members => row.member_headings(),
        Panel::Requests => vec![("from", NAME_WIDTH), ("since", TIME_WIDTH), ("request", rest)],
        Panel::Tasks => {
            vec![
                ("task", row.graph_width()),
                ("state", TASK_STATE_WIDTH),
                ("owner", NAME_WIDTH),
                ("subject", rest),
            ]
        }
        Panel::Messages => {
            let heading = row.capabilities.glyph("time, from → to: message", "time, from -> to: message");
            vec![(heading, rest)]
        }
    }
}

struct RowFormatter<'a> {
    state: &'a UiState,
    capabilities: TerminalCapabilities,
    /// The width of the panel.
    width: usize,
}

impl<'a> RowFormatter<'a> {
    fn new(state: &'a UiState, layout: &PanelLayout) -> RowFormatter<'a> {
        RowFormatter { state, capabilities: state.capabilities, width: layout.area.width.into() }
    }

    fn member_row(&self, member: &MemberItem) -> Vec<Span<'static>> {
        let unread = match member.unread {
            None => "?".to_owned(),
            Some(0) => String::new(),
            Some(unread) => format!("{unread} new"),
        };
        let mut spans = vec![
            Span::styled(
                self.padded_cell(&member.name, NAME_WIDTH),
                self.capabilities.member_style(&member.color),
            ),
            Span::styled(self.padded_cell(&member.state, STATE_WIDTH), self.state_style(&member.state)),
            Span::raw(self.padded_cell(&member.since, TIME_WIDTH)),
            Span::styled(self.padded_cell(&unread, UNREAD_WIDTH), Style::new().add_modifier(Modifier::BOLD)),
        ];
        let optional = [(&member.usage, self.usage_width()), (&member.task, self.member_task_width())];
        spans.extend(
            optional.iter().filter_map(|(text, width)| Some(Span::raw(self.padded_cell(text, (*width)?)))),
        );
        spans.push(self.colored_text(&member.last_line, Color::DarkGray));
        spans
    }

    fn member_headings(&self) -> Vec<(&'static str, usize)> {
        let mut headings = vec![
            ("name", NAME_WIDTH),
            ("state", STATE_WIDTH),
            ("since", TIME_WIDTH),
            ("unread", UNREAD_WIDTH),
        ];
        headings.extend(self.usage_width().map(|width| ("usage", width)));
        headings.extend(self.member_task_width().map(|width| ("task", width)));
        headings.push(("last line", self.width));
        headings
    }

    /// `None` if no member's program reports its usage.
    fn usage_width(&self) -> Option<usize> {
        let has_usage = self.state.snapshot.members.iter().any(|member| !member.usage.is_empty());
        has_usage.then_some(USAGE_WIDTH)
    }

    /// The width of the task column in the list of members: two fifths of the space that the
    /// columns of fixed width leave. The column for the last line of output gets the other three
    /// fifths. `None` if no member has a task, or if the screen is too narrow.
    fn member_task_width(&self) -> Option<usize> {
        let usage = self.usage_width().map_or(0, |width| width + 1);
        // The column that marks the selection has a width of 1. After each of the four columns of
        // fixed width is one blank.
        let used = 1 + NAME_WIDTH + STATE_WIDTH + TIME_WIDTH + UNREAD_WIDTH + 4 + usage;
        let width = self.width.saturating_sub(used) * 2 / 5;
        let has_task = self.state.snapshot.members.iter().any(|member| !member.task.is_empty());
        (has_task && width >= MIN_TASK_WIDTH).then_some(width)
    }

    fn task_row(&self, task: &TaskItem) -> Vec<Span<'static>> {
        let owner = task.owner.as_deref().unwrap_or("-");
        vec![
            Span::raw(self.padded_cell(&task.graph, self.graph_width())),
            Span::styled(self.padded_cell(task.state.label(), TASK_STATE_WIDTH), self.task_style(task.state)),
            Span::styled(self.padded_cell(owner, NAME_WIDTH), self.member_style(owner)),
            Span::raw(self.capabilities.printable_line(&task.subject)),
        ]
    }

    /// The width of the column with the graph of the tasks: that of the widest task, within limits.
    fn graph_width(&self) -> usize {
        let widths = self.state.snapshot.tasks.iter().map(|task| task.graph.chars().count());
        widths.max().unwrap_or(0).clamp(NAME_WIDTH, self.width / 3)
    }

    fn message_row(&self, message: &MessageItem) -> Vec<Span<'static>> {
        let arrow = self.capabilities.glyph("→", "->");
        let summary = self.capabilities.printable_line(&message.summary);
        let name = |name: &str| Span::styled(self.capabilities.printable_line(name), self.member_style(name));
        vec![
            Span::raw(self.padded_cell(&message.time_text, TIME_WIDTH)),
            name(&message.from),
            Span::raw(format!(" {arrow} ")),
            name(&message.to),
            Span::raw(format!("{}: {summary}", repeat_text(message.count))),
        ]
    }

    fn request_row(&self, request: &RequestItem) -> Vec<Span<'static>> {
        vec![
            Span::styled(self.padded_cell(&request.from, NAME_WIDTH), self.member_style(&request.from)),
            Span::raw(self.padded_cell(&request.since, TIME_WIDTH)),
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

/// How often a message was repeated. Empty for a message that came once.
fn repeat_text(times: usize) -> String {
    if times > 1 { format!(" ({times} times)") } else { String::new() }
}
