//! The layout of the panels: where each panel is on the screen, and which of its items it shows.

use crate::screen_areas::list_area;
use crate::team_snapshot_for_screen::Panel;
use crate::ui_state::UiState;
use ratatui::layout::Rect;
use std::ops::Range;

/// A panel on the screen.
pub(crate) struct PanelLayout {
    pub(crate) panel: Panel,
    /// The place of the title line and of the rows below it.
    pub(crate) area: Rect,
    /// The indices of the items that are shown, one in each row.
    pub(crate) shown: Range<usize>,
}

/// The layout of each panel, from top to bottom.
pub(crate) fn panel_layouts(state: &UiState) -> Vec<PanelLayout> {
    let lists = list_area(state.size);
    let mut y = lists.y;
    let place = |(panel, rows): (Panel, usize)| {
        let height = u16::try_from(rows).unwrap_or(0) + 1;
        let area = Rect { y, height, ..lists };
        y += height;
        PanelLayout { panel, area, shown: shown_items(state, panel, rows) }
    };
    Panel::ALL.into_iter().zip(row_counts(state)).map(place).collect()
}

/// Returns how many rows each panel gets. All panels have the same right to an equal share of the
/// lines, but none gets more rows than it has items. Lines that are left over go to the active
/// panel first, and then to the other panels.
fn row_counts(state: &UiState) -> Vec<usize> {
    let lines = usize::from(list_area(state.size).height).saturating_sub(Panel::ALL.len());
    let wanted: Vec<usize> = Panel::ALL.iter().map(|panel| state.items(*panel).len()).collect();
    let share = lines / Panel::ALL.len();
    let mut counts: Vec<usize> = wanted.iter().map(|wanted| share.min(*wanted)).collect();
    let mut left = lines - counts.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..Panel::ALL.len()).collect();
    order.sort_by_key(|at| Panel::ALL[*at] != state.panel);
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
