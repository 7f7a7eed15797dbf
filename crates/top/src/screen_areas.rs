//! The areas of the screen: where the lists, the page of the selected item and the events are.
//! They depend only on the size of the terminal.

use ratatui::layout::Rect;

/// From this width on, the screen has two columns: the lists at the left, and the page of the
/// selected item at the right.
const WIDE_SCREEN: u16 = 120;

/// From this height on, a wide screen also shows the last events, below the page.
const TALL_SCREEN: u16 = 30;

/// The lines above and below the areas: header, result and bottom line.
const FIXED_LINES: u16 = 3;

/// Whether the page of the selected item is beside the lists. Otherwise the page covers the lists.
pub(crate) fn has_page_beside_lists((width, _): (u16, u16)) -> bool {
    width >= WIDE_SCREEN
}

/// The area of the lists.
pub(crate) fn list_area(size: (u16, u16)) -> Rect {
    Rect { width: page_column(size).map_or(size.0, |column| column - 1), ..full_area(size) }
}

/// The area of the page of an item, with its title.
pub(crate) fn page_area(size: (u16, u16)) -> Rect {
    let events = event_area(size).map_or(0, |area| area.height);
    let area = right_column(size);
    Rect { height: area.height - events, ..area }
}

/// The area of the last events, with its title. `None` if the screen is too small for it.
pub(crate) fn event_area(size: (u16, u16)) -> Option<Rect> {
    let height = size.1 / 4;
    let area = right_column(size);
    let has_room = has_page_beside_lists(size) && size.1 >= TALL_SCREEN;
    has_room.then(|| Rect { y: area.bottom() - height, height, ..area })
}

/// The column of the line between the lists and the page. `None` if the page covers the lists.
pub(crate) fn divider_column(size: (u16, u16)) -> Option<u16> {
    page_column(size).map(|column| column - 1)
}

fn right_column(size: (u16, u16)) -> Rect {
    let x = page_column(size).unwrap_or(0);
    Rect { x, width: size.0 - x, ..full_area(size) }
}

fn page_column(size: (u16, u16)) -> Option<u16> {
    // With this width of the lists, all their headings fit at the smallest width.
    has_page_beside_lists(size).then_some(size.0 / 2 + 3)
}

fn full_area((width, height): (u16, u16)) -> Rect {
    Rect::new(0, 1, width, height.saturating_sub(FIXED_LINES))
}
