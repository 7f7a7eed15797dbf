//! Draws the screen. Drawing is a pure function of the state. Texts of other programs pass
//! `TerminalCapabilities::printable` first, which escapes control characters. Every state is shown
//! as a word, so no information is in colours alone.

mod header_line;
mod item_rows;
mod panel_title;
mod time_line;

use crate::detail_page_layout;
use crate::panel_layout::{PanelLayout, panel_layouts};
use crate::screen_areas::{divider_column, event_area, has_page_beside_lists, page_area};
use crate::team_snapshot_for_screen::Panel;
use crate::ui_events_and_effects::ActionStatus;
use crate::ui_state::{ActiveView, BottomLine, InputPrompt, PromptPurpose, ReadProgress, UiState};
use panel_title::title_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use std::ops::Range;

/// On which screens a line of the help page is shown.
#[derive(Clone, Copy, PartialEq)]
enum HelpScope {
    /// Only for a running team.
    Team,
    /// Only for a film.
    Film,
    All,
}

/// The lines of the help page.
const HELP: &[(HelpScope, &str)] = &[
    (HelpScope::Film, "Space            pause, go on             + -        faster, slower: 0.5 to 64"),
    (HelpScope::Film, "left right       10 s back, forward       Home End   the start, the end"),
    (HelpScope::Film, "[ ]              the previous message, the next one; the film pauses there"),
    (HelpScope::Film, "{ }              the previous failure, the next one: ! in the time line"),
    (HelpScope::Film, "( )              the previous request, the next one: ? in the time line"),
    (HelpScope::All, "up down j k      one line             PgUp PgDn g G  a page, start, end"),
    (HelpScope::All, "Tab, Shift-Tab   the next panel, the previous one"),
    (HelpScope::All, "Enter            show it in full: member and pane, message, request, task"),
    (HelpScope::All, "Esc              back; in the lists: remove the filter"),
    (HelpScope::Team, "s                send a message to that member (its sender, owner, asker)"),
    (HelpScope::Team, "x                ask it to shut down; the reason may be empty"),
    (HelpScope::Team, "K                kill it: press K again to do it, any other key to cancel"),
    (HelpScope::Team, "a                go to its pane; tmux says how to come back"),
    (HelpScope::Team, "y  n             approve or deny a request, after it was shown to its end"),
    (HelpScope::All, "/  n             find a text in the items of all panels; find the next one"),
    (HelpScope::All, "f                show only items that contain a text"),
    (HelpScope::All, "c                copy the item's text"),
    (HelpScope::All, "m                mouse off or on; off, it selects text of the terminal"),
    (HelpScope::Team, "t                choose another team"),
    (HelpScope::All, "^L               draw the screen again"),
    (HelpScope::Team, "q                quit; the team keeps running"),
    (HelpScope::Film, "q                quit"),
    (HelpScope::All, ""),
    (HelpScope::All, "Times are clock times: since when the state lasts. A task is below the one that"),
    (HelpScope::All, "it waits for; after ← are the other tasks that it waits for."),
];

/// Draws the whole screen.
pub(crate) fn draw(state: &UiState, buffer: &mut Buffer) {
    let (width, height) = state.size;
    let mut painter = Painter { state, buffer };
    if detail_page_layout::is_too_small(state.size) {
        return painter.draw_line(0, 0, &[Span::raw("too small")]);
    }
    painter.draw_line(0, 0, &header_line::header_spans(state));
    match state.view {
        ActiveView::Help => painter.draw_help(),
        ActiveView::Details if !has_page_beside_lists(state.size) => painter.draw_details(),
        ActiveView::Lists | ActiveView::Details => {
            painter.draw_lists();
            painter.draw_right_column();
        }
    }
    painter.draw_time_line(height - 2);
    painter.draw_result(height - 2);
    painter.draw_bottom_line(height - 1, width);
}

struct Painter<'a> {
    state: &'a UiState,
    buffer: &'a mut Buffer,
}

impl Painter<'_> {
    /// Draws `spans` as one line of the screen, starting at column `x`.
    fn draw_line(&mut self, x: u16, y: u16, spans: &[Span<'_>]) {
        self.draw_line_between(x..self.state.size.0, y, spans);
    }

    /// Draws `spans` on the line `y`, within `columns` of the screen. If the text does not fit, it
    /// ends in an ellipsis. The caller must have escaped control characters in the text.
    fn draw_line_between(&mut self, columns: Range<u16>, y: u16, spans: &[Span<'_>]) {
        if y >= self.state.size.1 || !self.buffer.area.contains((columns.start, y).into()) {
            return;
        }
        let mut at = columns.start;
        for Span { content: text, style } in spans {
            let columns_left = usize::from(columns.end.saturating_sub(at));
            let fits = detail_page_layout::fitting_bytes(text, columns_left);
            if columns_left == 0 || (fits < text.len() && columns_left < 2) {
                return self.draw_ellipsis(columns.end - 1, y, *style);
            }
            let end = if fits < text.len() {
                detail_page_layout::fitting_bytes(text, columns_left - 1)
            } else {
                fits
            };
            (at, _) = self.buffer.set_stringn(at, y, &text[..end], columns_left, *style);
            if fits < text.len() {
                return self.draw_ellipsis(at, y, *style);
            }
        }
    }

    fn draw_ellipsis(&mut self, x: u16, y: u16, style: Style) {
        self.buffer.set_stringn(x, y, self.state.capabilities.glyph("…", "~"), 1, style);
    }

    fn draw_lists(&mut self) {
        for layout in panel_layouts(self.state) {
            let area = layout.area;
            self.draw_line_between(area.left()..area.right(), area.y, &title_line(self.state, &layout));
            self.draw_rows(&layout);
        }
    }

    /// Draws what a wide screen shows beside the lists.
    fn draw_right_column(&mut self) {
        let Some(column) = divider_column(self.state.size) else { return };
        let divider = Span::raw(self.state.capabilities.glyph("│", "|"));
        for y in 1..self.state.size.1 - 2 {
            self.draw_line(column, y, std::slice::from_ref(&divider));
        }
        self.draw_details();
        self.draw_events();
    }

    /// Draws the last events, if the screen has room for them.
    fn draw_events(&mut self) {
        let Some(area) = event_area(self.state.size) else { return };
        let events = &self.state.snapshot.events;
        let rows = usize::from(area.height).saturating_sub(1);
        let hidden = events.len().saturating_sub(rows);
        let title = match self.state.film {
            None => format!(" events, all: {} ", self.state.suggested_commands.command(&["events"])),
            Some(_) => " events ".to_owned(),
        };
        self.draw_title(area, &title, Modifier::empty());
        for (y, event) in (area.y + 1..).zip(&events[hidden..]) {
            let text = self.state.capabilities.printable_line(&event.text);
            self.draw_line_between(
                area.left()..area.right(),
                y,
                &[Span::raw(format!("{} {text}", event.time_text))],
            );
        }
    }

    /// Draws the title line of an area.
    fn draw_title(&mut self, area: Rect, title: &str, modifier: Modifier) {
        let rule = self.state.capabilities.glyph("─", "-");
        let style = Style::new().add_modifier(modifier);
        let rest = usize::from(area.width).saturating_sub(1 + Span::raw(title).width());
        let spans = [Span::raw(rule), Span::styled(title, style), Span::raw(rule.repeat(rest))];
        self.draw_line_between(area.left()..area.right(), area.y, &spans);
    }

    /// Draws the shown items of a panel.
    fn draw_rows(&mut self, layout: &PanelLayout) {
        let PanelLayout { panel, area, shown } = layout;
        let selected = self.state.selected_index(*panel).filter(|_| *panel == self.state.panel);
        let items = self.state.items(*panel);
        for (y, index) in (area.y + 1..).zip(shown.clone()) {
            let is_selected = selected == Some(index);
            let mut spans = item_rows::item_row(self.state, layout, items[index]);
            spans.insert(0, Span::raw(if is_selected { ">" } else { " " }));
            self.draw_line_between(area.left()..area.right(), y, &spans);
            if is_selected {
                let row = Rect { y, height: 1, ..*area };
                self.buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }

    /// Draws the page, if there is one. Its title is in brackets if the keys act on the page.
    fn draw_details(&mut self) {
        let Some(page) = &self.state.page else { return };
        let area = page_area(self.state.size);
        let lines = detail_page_layout::page_lines(self.state, page);
        let last = (page.first_line + detail_page_layout::page_height(self.state.size)).min(lines.len());
        let kind = page.panel.title().trim_end_matches('s');
        let title = format!("{kind}, lines {} to {last} of {}", page.first_line + 1, lines.len());
        match self.state.view {
            ActiveView::Details => self.draw_title(area, &format!("[{title}]"), Modifier::BOLD),
            _ if last - page.first_line.min(last) < lines.len() => {
                self.draw_title(area, &format!(" {title} "), Modifier::empty());
            }
            _ => self.draw_title(area, &format!(" {kind} "), Modifier::empty()),
        }
        for (y, line) in (area.y + 1..).zip(&lines[page.first_line.min(lines.len())..last]) {
            self.draw_line_between(area.left()..area.right(), y, line);
        }
    }

    fn draw_help(&mut self) {
        let area = Rect::new(0, 1, self.state.size.0, self.state.size.1 - 3);
        self.draw_title(area, "[help]", Modifier::BOLD);
        let other = if self.state.film.is_some() { HelpScope::Team } else { HelpScope::Film };
        let lines = HELP.iter().filter(|(scope, _)| *scope != other);
        for (y, (_, line)) in (2..area.bottom()).zip(lines) {
            self.draw_line(1, y, &[Span::raw(self.state.capabilities.printable_line(line))]);
        }
    }

    /// Draws the time line of a film. The result of a key covers it.
    fn draw_time_line(&mut self, y: u16) {
        if let Some(film) = &self.state.film {
            let line = time_line::time_line(film, self.state.capabilities, self.state.size.0.into());
            self.draw_line(0, y, &line);
        }
    }

    fn draw_result(&mut self, y: u16) {
        let Some(result) = &self.state.result else { return };
        let style = match result.status {
            ActionStatus::Done => self.state.capabilities.color_style(Color::Green),
            ActionStatus::Failed => self.state.capabilities.color_style(Color::Red),
        };
        // A result is more important than the lines that it covers.
        let lines = detail_page_layout::result_lines(&result.text, self.state.size, self.state.capabilities);
        let first = y + 1 - u16::try_from(lines.len()).unwrap_or(1);
        for (y, line) in (first..).zip(&lines) {
            let blank = " ".repeat(usize::from(self.state.size.0));
            self.draw_line(0, y, &[Span::raw(blank)]);
            self.draw_line(0, y, &[Span::styled(line, style)]);
        }
    }

    fn draw_bottom_line(&mut self, y: u16, width: u16) {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        match &self.state.bottom_line {
            BottomLine::KeyHelp => self.draw_line(0, y, &[Span::raw(self.key_help())]),
            BottomLine::ConfirmKill(name) => {
                let name = self.state.capabilities.printable_line(name);
                let text = format!("kill {name}: press K again to do it, any other key to cancel");
                self.draw_line(0, y, &[Span::styled(text, strong)]);
            }
            BottomLine::Prompt(prompt) => {
                let text = self.prompt_text(prompt);
                // A long text shows its end, where the person types.
                let over = Span::raw(&text).width().saturating_sub(usize::from(width) - 1);
                let first = if over > 0 { detail_page_layout::fitting_bytes(&text, over) } else { 0 };
                let shown = &text[first..];
                let caret = Style::new().add_modifier(Modifier::REVERSED);
                self.draw_line(0, y, &[Span::styled(shown, strong), Span::styled(" ", caret)]);
            }
        }
    }

    fn prompt_text(&self, InputPrompt { purpose, text }: &InputPrompt) -> String {
        let label = match purpose {
            PromptPurpose::Message(to) => format!("message to {to}: "),
            PromptPurpose::ShutdownReason(name) => {
                format!("ask {name} to shut down (Enter asks, Esc does not), why: ")
            }
            PromptPurpose::DenyReason(_) => "no, since: ".to_owned(),
            PromptPurpose::Filter => "only: ".to_owned(),
            PromptPurpose::Search => "find: ".to_owned(),
        };
        self.state.capabilities.printable_line(&format!("{label}{text}"))
    }

    fn key_help(&self) -> &'static str {
        match (self.state.view, &self.state.page) {
            (ActiveView::Help, _) => "any key: back",
            (ActiveView::Details, _) if self.state.film.is_some() => {
                "PgUp PgDn, arrows: scroll   Space:pause   Esc:back"
            }
            (ActiveView::Lists, _) if self.state.film.is_some() => {
                "Space:pause +-:speed []:message {}:failure ():request ?:help q:quit"
            }
            (ActiveView::Details, Some(page)) if page.panel == Panel::Requests => {
                match detail_page_layout::progress_after_draw(self.state, page) == ReadProgress::Complete {
                    true => "y:approve n:deny s:send K:kill a:attach Esc:back",
                    false => "Space, arrows: to its end, then it can be answered   Esc:back",
                }
            }
            (ActiveView::Details, _) => "Space, arrows: scroll   s:send x:shutdown K:kill a:attach Esc:back",
            (ActiveView::Lists, _) => {
                "Tab Enter:whole s:send x:shutdown K:kill a:attach /:find ?:help q:quit"
            }
        }
    }
}
