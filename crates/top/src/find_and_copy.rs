//! Finds the next item that contains a text, and copies the text of an item.

use crate::styled_output_lines::styled_lines;
use crate::team_snapshot_for_screen::{ListItem, Panel};
use crate::terminal_capabilities::{ColorSupport, TerminalCapabilities};
use crate::ui_events_and_effects::{ActionResult, UiEffect};
use crate::ui_state::{DetailPage, UiState};
use protocol::escape_control_chars::visible;

/// Selects the next item whose row or page contains the text of the last search. Capital and small
/// letters count as equal. After the last item of the active panel, the search goes on in the next
/// panels. The selected item itself is searched last.
pub(crate) fn select_next_match(state: &mut UiState) -> Vec<UiEffect> {
    let text = state.search.to_lowercase();
    if text.is_empty() {
        return state.refuse("nothing to find: / asks for it");
    }
    let is_match = |item: &dyn ListItem| {
        [item.filter_text(), item.details()].iter().any(|part| part.to_lowercase().contains(&text))
    };
    let places = places_after_selection(state);
    let next = places.into_iter().find(|(panel, at)| is_match(state.items(*panel)[*at]));
    let Some((panel, at)) = next else { return state.refuse("no item contains it") };
    state.panel = panel;
    state.select(at);
    Vec::new()
}

/// All items, beginning after the selected one: their panels and their indices.
fn places_after_selection(state: &UiState) -> Vec<(Panel, usize)> {
    let first = Panel::ALL.iter().position(|panel| *panel == state.panel).unwrap_or(0);
    let panels = Panel::ALL.iter().cycle().skip(first).take(Panel::ALL.len());
    let mut places: Vec<_> =
        panels.flat_map(|panel| (0..state.items(*panel).len()).map(|at| (*panel, at))).collect();
    let skipped = state.selected_index(state.panel).map_or(0, |at| at + 1);
    let skipped = skipped.min(places.len());
    places.rotate_left(skipped);
    places
}

/// Copies the text of the page, or of the selected item if there is no page.
pub(crate) fn copy_item(state: &mut UiState) -> Vec<UiEffect> {
    let text = match (&state.page, state.selected_item()) {
        (Some(page), _) => page_text(page, state.capabilities),
        (None, Some(item)) => item.details(),
        (None, None) => return state.refuse("nothing is selected"),
    };
    let text = visible(&text);
    let lines = text.lines().count();
    state.result =
        Some(ActionResult::success(format!("copied {lines} {}", if lines == 1 { "line" } else { "lines" })));
    vec![UiEffect::Copy(text)]
}

/// The text of a page as it is copied, without colors.
fn page_text(page: &DetailPage, capabilities: TerminalCapabilities) -> String {
    let plain = TerminalCapabilities { colors: ColorSupport::Disabled, ..capabilities };
    let output = page.output.as_ref().map(|output| {
        let lines = styled_lines(output.text(), plain).into_iter();
        let lines = lines.map(|line| line.iter().map(|span| &*span.content).collect::<String>());
        lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    });
    let sections = [page.text.clone(), page.diagnosis.clone(), output.unwrap_or_default()];
    sections.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}
