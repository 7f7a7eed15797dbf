//! The layout of the panels: where each panel is on the screen, and which of its items it shows.

use crate::detail_page_layout::FIXED_LINES;
use crate::team_snapshot_for_screen::Panel;
use crate::ui_state::UiState;
use ratatui::layout::Rect;
use std::ops::Range;

/// The smallest width at which the screen has two columns of panels. The rows of a panel are made
/// for 80 characters, and each half of the screen must have room for one panel.
const TWO_COLUMNS_WIDTH: u16 = 160;

/// A panel on the screen.
pub(crate) struct PanelLayout {
    pub(crate) panel: Panel,
    /// The place of the title line and of the rows below it.
    pub(crate) area: Rect,
    /// The indices of the items that are shown, one in each row.
    pub(crate) shown: Range<usize>,
}

/// The layout of each panel, in the order of [`Panel::ALL`]. On a wide screen the first half of the panels
/// is in the left column and the second half in the right one. Otherwise all panels are in one column.
pub(crate) fn panel_layouts(state: &UiState) -> Vec<PanelLayout> {
    let (width, _) = state.size;
    if width < TWO_COLUMNS_WIDTH {
        return stack_panels(state, &Panel::ALL, 0..width);
    }
    let (left, right) = Panel::ALL.split_at(Panel::ALL.len() / 2);
    let mut layouts = stack_panels(state, left, 0..width / 2);
    layouts.extend(stack_panels(state, right, width / 2..width));
    layouts
}

/// Places the panels below each other, in these columns of the screen.
fn stack_panels(state: &UiState, panels: &[Panel], columns: Range<u16>) -> Vec<PanelLayout> {
    let mut y = 1;
    let place = |(panel, rows): (&Panel, usize)| {
        let height = u16::try_from(rows).unwrap_or(0) + 1;
        let area = Rect::new(columns.start, y, columns.end - columns.start, height);
        y += height;
        PanelLayout { panel: *panel, area, shown: shown_items(state, *panel, rows) }
    };
    panels.iter().zip(row_counts(state, panels)).map(place).collect()
}

/// How many rows each panel gets, if `panels` are placed below each other. Each may take an equal
/// share of the lines. Lines that a panel does not need go to the active panel first, then to the
/// other panels.
fn row_counts(state: &UiState, panels: &[Panel]) -> Vec<usize> {
    let lines = usize::from(state.size.1).saturating_sub(FIXED_LINES + panels.len());
    let wanted: Vec<usize> = panels.iter().map(|panel| state.items(*panel).len()).collect();
    let share = lines / panels.len();
    let mut counts: Vec<usize> = wanted.iter().map(|wanted| share.min(*wanted)).collect();
    let mut left = lines - counts.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..panels.len()).collect();
    order.sort_by_key(|at| panels[*at] != state.panel);
    for at in order {
        let more = (wanted[at] - counts[at]).min(left);
        counts[at] += more;
        left -= more;
    }
    counts
}

/// The items that a panel with this number of rows shows. The selected item is among them.
fn shown_items(state: &UiState, panel: Panel, rows: usize) -> Range<usize> {
    if rows == 0 {
        return 0..0;
    }
    let count = state.items(panel).len();
    let selected = state.selected_index(panel).unwrap_or(0);
    let first = match panel {
        // The message list shows its end.
        Panel::Messages => (selected + 1).saturating_sub(rows).max(count.saturating_sub(rows).min(selected)),
        Panel::Members | Panel::Tasks | Panel::Requests => (selected + 1).saturating_sub(rows),
    };
    first..(first + rows).min(count)
}
