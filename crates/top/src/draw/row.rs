//! One line for one thing.

use super::Spans;
use crate::manner::Manner;
use crate::page::fitting;
use crate::sight::{AsLine, Item, Letter, Member, Request, Task};
use crate::state::State;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Columns of a name.
const NAME: usize = 12;
/// Of what somebody has used up: `123.4k $12.34`.
const USED: usize = 13;

/// The line of that thing.
pub(super) fn of(state: &State, item: &dyn Item) -> Spans {
    let row = Row { state, manner: state.manner };
    match item.as_line() {
        AsLine::Member(member) => row.member(member),
        AsLine::Task(task) => row.task(task),
        AsLine::Letter(letter) => row.letter(letter),
        AsLine::Request(request) => row.request(request),
    }
}

struct Row<'a> {
    state: &'a State,
    manner: Manner,
}

impl Row<'_> {
    fn member(&self, member: &Member) -> Spans {
        let unread = match member.unread {
            None => "?".to_owned(),
            Some(0) => String::new(),
            Some(unread) => format!("{unread} new"),
        };
        let task = usize::from(self.state.size.0).saturating_sub(44) * 2 / 5;
        let mut spans = vec![
            (self.cell(&member.name, NAME), self.manner.member(&member.color)),
            (self.cell(&member.state, 15), self.state_style(&member.state)),
            (self.cell(&member.since, 5), Style::new()),
            (self.cell(&unread, 7), Style::new().add_modifier(Modifier::BOLD)),
        ];
        if self.state.sight.members.iter().any(|member| !member.used.is_empty()) {
            spans.push((self.cell(&member.used, USED), Style::new()));
        }
        if !member.task.is_empty() {
            spans.push((self.cell(&member.task, task), Style::new()));
        }
        spans.push((self.manner.line(&member.last), self.manner.color(Color::DarkGray)));
        spans
    }

    fn task(&self, task: &Task) -> Spans {
        let branch = match task.depth {
            0 => String::new(),
            depth => format!("{}{} ", "  ".repeat(depth - 1), self.manner.glyph("└", "`")),
        };
        let waits = match task.waits_for.as_slice() {
            [] => String::new(),
            ids if task.depth == 0 => format!("  (waits for {})", listed(ids)),
            ids => format!("  (and for {})", listed(ids)),
        };
        let owner = task.owner.as_deref().unwrap_or("-");
        vec![
            (self.cell(&format!("{branch}#{}", task.id), 8 + 2 * task.depth.saturating_sub(1)), Style::new()),
            (self.cell(task.state, 7), self.state_style(task.state)),
            (self.cell(owner, NAME), self.style_of(owner)),
            (self.manner.line(&task.subject), Style::new()),
            (waits, self.manner.color(Color::DarkGray)),
        ]
    }

    fn letter(&self, letter: &Letter) -> Spans {
        let arrow = self.manner.glyph("→", "->");
        vec![
            (self.cell(&letter.clock, 5), Style::new()),
            (self.manner.line(&letter.from), self.style_of(&letter.from)),
            (format!(" {arrow} "), Style::new()),
            (self.manner.line(&letter.to), self.style_of(&letter.to)),
            (format!("{}: {}", times(letter.times), self.manner.line(&letter.about)), Style::new()),
        ]
    }

    fn request(&self, request: &Request) -> Spans {
        vec![
            (self.cell(&request.since, 5), Style::new()),
            (self.cell(&request.from, NAME), self.style_of(&request.from)),
            (self.manner.line(&request.about), self.manner.color(Color::Yellow)),
        ]
    }

    /// As wide as that, and a blank behind it.
    fn cell(&self, text: &str, width: usize) -> String {
        let mut text = self.manner.line(text);
        let end = fitting(&text, width);
        if end < text.len() {
            text.truncate(fitting(&text, width.saturating_sub(1)));
            text.push_str(self.manner.glyph("…", "~"));
        }
        let pad = (width + 1).saturating_sub(Span::raw(&text).width());
        text + &" ".repeat(pad)
    }

    fn style_of(&self, name: &str) -> Style {
        self.manner.member(self.state.sight.member(name).map_or("", |member| &member.color))
    }

    fn state_style(&self, state: &str) -> Style {
        match state {
            state if state.contains('!') => self.manner.color(Color::Yellow),
            "failed" | "killed" | "left" | "unknown" => self.manner.color(Color::Red),
            state if state.starts_with("active") || state == "working" => self.manner.color(Color::Green),
            _ => Style::new(),
        }
    }
}

fn listed(ids: &[protocol::id::TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Of what has come once, nothing.
fn times(times: usize) -> String {
    if times > 1 { format!(" ({times} times)") } else { String::new() }
}
