//! Which windows are a team's, and how many panes they have room for. Plain functions of what tmux lists.

use crate::core::id::SpawnId;
use protocol::control::Layout;
use protocol::error::{ErrorKind, ErrorReport};
use std::collections::BTreeSet;
use tmux::{MAIN_PANE_PERCENT, PaneId, PaneRow, PaneTag, WindowId};

/// Those of these that are in no session of hidden panes.
pub(crate) fn find_visible(rows: &[PaneRow], panes: Vec<(SpawnId, PaneId, PaneTag)>) -> Vec<SpawnId> {
    let is_seen = |pane: &PaneId, owner: &PaneTag| {
        let row = rows.iter().find(|row| row.pane == *pane);
        row.is_some_and(|row| !row.is_hidden && row.tag.as_deref() == Some(owner.as_str()))
    };
    panes.into_iter().filter(|(_, pane, owner)| is_seen(pane, owner)).map(|(spawn, ..)| spawn).collect()
}

/// No pane of ours gets smaller, columns × rows, as long as a further window can be had.
const MIN_PANE: (u32, u32) = (60, 12);

/// Smaller ones tmux does not make without making the window larger.
const TMUX_MIN_PANE: (u32, u32) = (10, 2);

/// The windows that we made and that hold panes of these owners in sight.
pub(super) fn team_windows(rows: &[PaneRow], owners: &[PaneTag]) -> BTreeSet<WindowId> {
    let known = |owner: &str| owners.iter().any(|known| known.as_str() == owner);
    let ours =
        |row: &&PaneRow| row.is_teamd_window && !row.is_hidden && row.tag.as_deref().is_some_and(known);
    rows.iter().filter(ours).map(|row| row.window).collect()
}

/// One of them that has room for one more. Never a window of a person's own that one of our panes was moved to.
pub(super) fn window_with_space(rows: &[PaneRow], owners: &[PaneTag], layout: Layout) -> Option<WindowId> {
    team_windows(rows, owners).into_iter().find(|window| {
        let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == *window).collect();
        let holds = |row: &&PaneRow| capacity(layout, (row.width, row.height), MIN_PANE);
        panes.first().map(holds).is_some_and(|holds| (panes.len() as u32) < holds)
    })
}

/// tmux makes a window larger than its terminal rather than refuse some layouts.
pub(super) fn check_fits(rows: &[PaneRow], window: WindowId, layout: Layout) -> Result<(), ErrorReport> {
    let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == window).collect();
    let holds = panes.first().map_or(1, |row| capacity(layout, (row.width, row.height), TMUX_MIN_PANE));
    if panes.len() as u32 <= holds {
        return Ok(());
    }
    let message = format!("cannot lay out {window} as {}: {} panes do not fit", layout.as_str(), panes.len());
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("hide some of them, or make the terminal larger"))
}

/// How many panes of at least `columns` by `rows` a window of that size holds so, borders included; one at least.
fn capacity(layout: Layout, (width, height): (u32, u32), (columns, rows): (u32, u32)) -> u32 {
    let across = ((width + 1) / (columns + 1)).max(1);
    let down = ((height + 1) / (rows + 1)).max(1);
    match layout {
        Layout::Tiled => across * down,
        Layout::EvenHorizontal => across,
        Layout::EvenVertical => down,
        // The large one, and the others if they have space beside it.
        Layout::MainVertical if space_beside_main(width) >= columns => down + 1,
        Layout::MainHorizontal if space_beside_main(height) >= rows => across + 1,
        Layout::MainVertical | Layout::MainHorizontal => 1,
    }
}

/// What a main pane and its border leave.
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
        }
    }

    #[test]
    fn a_new_pane_goes_beside_its_own_and_neither_out_of_sight_nor_into_a_persons_window() {
        let ours: Vec<PaneTag> = vec!["ann".parse().unwrap()];
        let room = |row: PaneRow| window_with_space(&[row], &ours, Layout::Tiled);
        assert_eq!(room(row("%1", "@1", "ann")), Some("@1".parse().unwrap()));
        assert_eq!(room(row("%1", "@1", "bob")), None);
        assert_eq!(room(PaneRow { is_hidden: true, ..row("%1", "@1", "ann") }), None);
        assert_eq!(room(PaneRow { is_teamd_window: false, ..row("%1", "@1", "ann") }), None);
        assert_eq!(room(PaneRow { width: 80, height: 24, ..row("%1", "@1", "ann") }), None);
    }

    #[test]
    fn a_window_is_full_before_its_panes_get_too_small() {
        let holds = |layout, width, height| capacity(layout, (width, height), MIN_PANE);
        assert_eq!(holds(Layout::Tiled, 80, 24), 1);
        assert_eq!(holds(Layout::Tiled, 121, 25), 4);
        assert_eq!(holds(Layout::Tiled, 200, 50), 9);
        assert_eq!(holds(Layout::Tiled, 20, 5), 1, "a tiny terminal still gets a window for each agent");
        assert_eq!((holds(Layout::EvenVertical, 200, 50), holds(Layout::EvenHorizontal, 200, 50)), (3, 3));
        assert_eq!((holds(Layout::MainVertical, 200, 50), holds(Layout::MainHorizontal, 200, 50)), (4, 4));
        assert_eq!((holds(Layout::MainVertical, 80, 24), holds(Layout::MainHorizontal, 80, 24)), (1, 1));
        assert_eq!((holds(Layout::MainVertical, 140, 50), holds(Layout::MainVertical, 153, 50)), (1, 4));
    }

    #[test]
    fn a_layout_that_would_make_the_window_larger_is_refused() {
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
