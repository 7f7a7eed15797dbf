//! What a click and the wheel of the mouse do.

use crate::detail_page_layout::is_too_small;
use crate::panel_layout::{PanelLayout, panel_layouts};
use crate::screen_areas::{has_page_beside_lists, page_area};
use crate::ui_events_and_effects::{ActionResult, MouseAction, MouseMode, UiEffect};
use crate::ui_state::{ActiveView, BottomLine, UiState};
use crate::update_detail_page::{open_details, scroll};

/// How many lines of a page one step of the wheel scrolls.
const WHEEL_LINES: isize = 3;

/// Handles a click or a step of the wheel at this column and line of the screen. While a question
/// is open, the mouse does nothing, so that a click cannot change what the answer is about.
pub(crate) fn handle_mouse(state: &mut UiState, action: MouseAction, at: (u16, u16)) -> Vec<UiEffect> {
    let is_asking = state.bottom_line != BottomLine::KeyHelp;
    if is_asking || state.view == ActiveView::Help || is_too_small(state.size) {
        return Vec::new();
    }
    let is_wide = has_page_beside_lists(state.size);
    let has_page = is_wide || state.view == ActiveView::Details;
    if has_page && page_area(state.size).contains(at.into()) {
        return act_on_page(state, action);
    }
    let layouts = panel_layouts(state);
    let panel = layouts.iter().find(|layout| layout.area.contains(at.into()));
    if let Some(layout) = panel.filter(|_| is_wide || state.view == ActiveView::Lists) {
        act_on_panel(state, action, layout, at.1);
    }
    Vec::new()
}

fn act_on_page(state: &mut UiState, action: MouseAction) -> Vec<UiEffect> {
    let effects = if state.view == ActiveView::Lists { open_details(state) } else { Vec::new() };
    match action {
        MouseAction::Click => {}
        MouseAction::WheelUp => scroll(state, -WHEEL_LINES),
        MouseAction::WheelDown => scroll(state, WHEEL_LINES),
    }
    effects
}

fn act_on_panel(state: &mut UiState, action: MouseAction, layout: &PanelLayout, line: u16) {
    (state.view, state.panel) = (ActiveView::Lists, layout.panel);
    let selected = state.selected_index(layout.panel).unwrap_or(0);
    match action {
        // The first line is the title of the panel.
        MouseAction::Click if line == layout.area.y => {}
        MouseAction::Click => state.select(layout.shown.start + usize::from(line - layout.area.y) - 1),
        MouseAction::WheelUp => state.select(selected.saturating_sub(1)),
        MouseAction::WheelDown => state.select(selected + 1),
    }
}

/// Turns the mouse on or off.
pub(crate) fn toggle_mouse(state: &mut UiState) -> Vec<UiEffect> {
    let (mode, text) = match state.mouse {
        MouseMode::On => (MouseMode::Off, "mouse off: it selects text of the terminal"),
        MouseMode::Off => (MouseMode::On, "mouse on: it selects items"),
    };
    state.mouse = mode;
    state.result = Some(ActionResult::success(text));
    vec![UiEffect::SetMouse(mode)]
}
