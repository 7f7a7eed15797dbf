//! Formats the line above a panel: its title, the headings of its columns, and how many items are
//! not shown.

use super::item_rows::column_headings;
use crate::panel_layout::PanelLayout;
use crate::team_snapshot_for_screen::Panel;
use crate::ui_state::{ActiveView, UiState};
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

/// The column at which the title begins, counted from the left edge of the panel.
const TITLE_COLUMN: usize = 1;

/// The line above a panel. The title of the active panel is in brackets.
pub(super) fn title_line(state: &UiState, layout: &PanelLayout) -> [Span<'static>; 3] {
    let is_active = layout.panel == state.panel && state.view == ActiveView::Lists;
    let count = item_count_text(state, layout.panel);
    let (title, style) = match is_active {
        true => (format!("[{} {count}]", layout.panel.title()), Style::new().add_modifier(Modifier::BOLD)),
        false => (format!(" {} {count} ", layout.panel.title()), Style::new()),
    };
    let cells = title_cells(state, layout, &title);
    let (rule, rest) = cells.split_at(TITLE_COLUMN);
    let (title, rest) = rest.split_at(title.len().min(rest.len()));
    let text = |cells: &[char]| cells.iter().collect::<String>();
    [Span::raw(text(rule)), Span::styled(text(title), style), Span::raw(text(rest))]
}

/// How many items a panel has, or how many of them match the filter.
fn item_count_text(state: &UiState, panel: Panel) -> String {
    let (listed, all) = (state.items(panel).len(), state.snapshot.items(panel).len());
    match listed == all {
        // The requests cannot be read, so no number is shown. A zero would mean that no request is
        // open.
        _ if panel == Panel::Requests && state.snapshot.has_unreadable_requests() => "?".to_owned(),
        true => all.to_string(),
        false => format!("{listed} of {all}"),
    }
}

/// The characters of the line above a panel with this title.
fn title_cells(state: &UiState, layout: &PanelLayout, title: &str) -> Vec<char> {
    let width = usize::from(layout.area.width);
    let mut cells: Vec<char> = state.capabilities.glyph("─", "-").chars().cycle().take(width).collect();
    write_text(&mut cells, TITLE_COLUMN, title);
    let title_end = TITLE_COLUMN + title.trim_end().len();
    let hidden = hidden_items_text(layout, state.items(layout.panel).len());
    let mut end = width - 1;
    if title_end + hidden.len() < end {
        end -= hidden.len();
        write_text(&mut cells, end, &hidden);
    }
    write_headings(&mut cells[..end], title_end, &column_headings(state, layout));
    cells
}

/// How many items are above and below the shown ones. Empty if all items are shown.
fn hidden_items_text(layout: &PanelLayout, count: usize) -> String {
    match (layout.shown.start, count - layout.shown.end) {
        (0, 0) => String::new(),
        (0, below) => format!(" {below} below "),
        (above, 0) => format!(" {above} above "),
        (above, below) => format!(" {above} above, {below} below "),
    }
}

/// Writes the headings of a panel's columns into the line that also has the panel's title. A
/// heading begins above the start of its column. If the title covers this place, the heading begins
/// to the right of the title. A heading that would reach into the next column is left out.
///
/// The first column begins at the second cell, because the first cell of a row marks the selection.
fn write_headings(cells: &mut [char], title_end: usize, headings: &[(&str, usize)]) {
    let mut column = 1;
    for (heading, width) in headings {
        let at = if column > title_end { column } else { title_end + 3 };
        column += width + 1;
        if at + heading.chars().count() < column.min(cells.len() + 1) {
            write_text(cells, at - 1, &format!(" {heading} "));
        }
    }
}

fn write_text(cells: &mut [char], at: usize, text: &str) {
    cells.iter_mut().skip(at).zip(text.chars()).for_each(|(cell, c)| *cell = c);
}
