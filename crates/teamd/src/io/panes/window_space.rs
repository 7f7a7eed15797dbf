//! Finds the windows of a team and computes how many panes fit into a window. The functions run no
//! tmux command: the caller passes a list of panes, with one row for each pane.

use protocol::control_socket::Layout;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::BTreeSet;
use tmux::{MAIN_PANE_PERCENT, PaneRow, PaneTag, WindowId};

/// The minimum size of an agent's pane, in columns and rows. A window counts as full if one more
/// pane would make its panes smaller than this size.
pub(super) const MIN_PANE: (u32, u32) = (60, 12);

/// The smallest pane that a layout may have, in columns and rows. If a layout needed smaller panes,
/// tmux would make the window larger than its terminal.
const TMUX_MIN_PANE: (u32, u32) = (10, 2);

/// The windows that the daemon created and that have a visible pane of one of these owners.
pub(super) fn team_windows(rows: &[PaneRow], owners: &[PaneTag]) -> BTreeSet<WindowId> {
    let is_owner = |tag: &str| owners.iter().any(|owner| owner.as_str() == tag);
    let is_team_pane =
        |row: &&PaneRow| row.is_teamd_window && !row.is_hidden && row.tag.as_deref().is_some_and(is_owner);
    rows.iter().filter(is_team_pane).map(|row| row.window).collect()
}

/// Returns a window of the team with space for one more pane. A user may have moved an agent's pane
/// to a window of the user. Invariant: such a window is never returned;
/// `a_new_pane_goes_only_to_a_visible_window_of_its_team` checks it.
pub(super) fn window_with_space(rows: &[PaneRow], owners: &[PaneTag], layout: Layout) -> Option<WindowId> {
    team_windows(rows, owners).into_iter().find(|window| {
        let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == *window).collect();
        let window_capacity = |row: &&PaneRow| capacity(layout, (row.width, row.height), MIN_PANE);
        panes.first().map(window_capacity).is_some_and(|capacity| (panes.len() as u32) < capacity)
    })
}

/// Checks that the panes of a window fit into it with `layout`. tmux itself accepts some layouts
/// that do not fit, and makes the window larger than its terminal.
pub(super) fn check_fits(rows: &[PaneRow], window: WindowId, layout: Layout) -> Result<(), ErrorReport> {
    let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == window).collect();
    let max_panes = panes.first().map_or(1, |row| capacity(layout, (row.width, row.height), TMUX_MIN_PANE));
    if panes.len() as u32 <= max_panes {
        return Ok(());
    }
    let message = format!("cannot lay out {window} as {}: {} panes do not fit", layout.as_str(), panes.len());
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("hide some of them, or make the terminal larger"))
}

/// How many panes of at least `columns` × `rows` fit into a window of `width` × `height` with this
/// layout. The border between two panes takes one column or row. The result is at least 1.
fn capacity(layout: Layout, (width, height): (u32, u32), (columns, rows): (u32, u32)) -> u32 {
    let columns_of_panes = ((width + 1) / (columns + 1)).max(1);
    let rows_of_panes = ((height + 1) / (rows + 1)).max(1);
    match layout {
        Layout::Tiled => columns_of_panes * rows_of_panes,
        Layout::EvenHorizontal => columns_of_panes,
        Layout::EvenVertical => rows_of_panes,
        // The main pane, and further panes if there is space beside it.
        Layout::MainVertical if space_beside_main(width) >= columns => rows_of_panes + 1,
        Layout::MainHorizontal if space_beside_main(height) >= rows => columns_of_panes + 1,
        Layout::MainVertical | Layout::MainHorizontal => 1,
    }
}

/// The columns or rows of a window that its main pane and the border leave for other panes.
fn space_beside_main(size: u32) -> u32 {
    size.saturating_sub(size * MAIN_PANE_PERCENT / 100 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pane: &str, window: &str, owner: &str) -> PaneRow {
        PaneRow {
            pane: pane.parse().unwrap(),
            window: window.parse().unwrap(),
            session: "$0".parse().unwrap(),
            pid: 1,
            is_dead: false,
            tag: Some(owner.to_owned()),
            is_zoomed: false,
            is_hidden: false,
            is_teamd_window: true,
            width: 121,
            height: 25,
            pane_width: 121,
            pane_height: 25,
        }
    }

    #[test]
    fn a_new_pane_goes_only_to_a_visible_window_of_its_team() {
        let owners: Vec<PaneTag> = vec!["ann".parse().unwrap()];
        let found = |row: PaneRow| window_with_space(&[row], &owners, Layout::Tiled);
        assert_eq!(found(row("%1", "@1", "ann")), Some("@1".parse().unwrap()));
        assert_eq!(found(row("%1", "@1", "bob")), None);
        assert_eq!(found(PaneRow { is_hidden: true, ..row("%1", "@1", "ann") }), None);
        assert_eq!(found(PaneRow { is_teamd_window: false, ..row("%1", "@1", "ann") }), None);
        assert_eq!(found(PaneRow { width: 80, height: 24, ..row("%1", "@1", "ann") }), None);
    }

    #[test]
    fn a_window_is_full_before_its_panes_are_too_small() {
        let max_panes = |layout, width, height| capacity(layout, (width, height), MIN_PANE);
        assert_eq!(max_panes(Layout::Tiled, 80, 24), 1);
        assert_eq!(max_panes(Layout::Tiled, 121, 25), 4);
        assert_eq!(max_panes(Layout::Tiled, 200, 50), 9);
        assert_eq!(max_panes(Layout::Tiled, 20, 5), 1, "a tiny terminal still gets a window for each agent");
        assert_eq!(
            (max_panes(Layout::EvenVertical, 200, 50), max_panes(Layout::EvenHorizontal, 200, 50)),
            (3, 3)
        );
        assert_eq!(
            (max_panes(Layout::MainVertical, 200, 50), max_panes(Layout::MainHorizontal, 200, 50)),
            (4, 4)
        );
        assert_eq!(
            (max_panes(Layout::MainVertical, 80, 24), max_panes(Layout::MainHorizontal, 80, 24)),
            (1, 1)
        );
        assert_eq!(
            (max_panes(Layout::MainVertical, 140, 50), max_panes(Layout::MainVertical, 153, 50)),
            (1, 4)
        );
    }

    #[test]
    fn a_layout_that_would_enlarge_the_window_is_rejected() {
        let rows: Vec<PaneRow> = (0..10).map(|n| row(&format!("%{n}"), "@1", "ann")).collect();
        let window = "@1".parse().unwrap();
        assert!(check_fits(&rows, window, Layout::Tiled).is_ok());
        assert!(check_fits(&rows, window, Layout::MainVertical).is_err());
        assert!(check_fits(&rows[..9], window, Layout::MainVertical).is_ok());
        let narrow: Vec<PaneRow> = rows[..2].iter().map(|row| PaneRow { width: 25, ..row.clone() }).collect();
        assert!(check_fits(&narrow, window, Layout::MainVertical).is_err());
        assert!(check_fits(&narrow, window, Layout::MainHorizontal).is_ok());
    }
}
