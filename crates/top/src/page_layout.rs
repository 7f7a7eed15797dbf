//! The layout of the screen: the lines of a detail page, and the height of each panel.

use crate::snapshot::Panel;
use crate::state::{ActiveView, DetailPage, ReadProgress, UiState};
use crate::terminal_capabilities::TerminalCapabilities;
use ratatui::text::Span;

/// The smallest usable size, in columns and lines.
pub(crate) const MIN_SIZE: (u16, u16) = (40, 10);

/// How many lines the result of an action takes at most.
const MAX_RESULT_LINES: usize = 4;

/// Lines beside the panels or the page: the header, the result and the bottom line.
const FIXED_LINES: usize = 3;

/// Whether the size is below [`MIN_SIZE`]. The screen then shows only `too small`.
pub(crate) fn is_too_small((width, height): (u16, u16)) -> bool {
    width < MIN_SIZE.0 || height < MIN_SIZE.1
}

/// How many lines of a page fit below its title.
pub(crate) fn page_height((_, height): (u16, u16)) -> usize {
    usize::from(height).saturating_sub(FIXED_LINES + 1)
}

/// How much of a page has been on the screen once `state` is drawn. Lines count from the first one
/// on, up to the first gap. Lines that the result covers do not count.
pub(crate) fn progress_after_draw(state: &UiState, page: &DetailPage) -> ReadProgress {
    let (size, capabilities) = (state.size, state.capabilities);
    let ReadProgress::UpToLine(read) = page.progress else { return page.progress };
    if is_too_small(size) || page.first_line > read {
        return page.progress;
    }
    let result = state.result.as_ref().map(|result| result_lines(&result.text, size, capabilities).len());
    let covered = result.unwrap_or_default().saturating_sub(1);
    let read = read.max(page.first_line + page_height(size).saturating_sub(covered));
    if read >= page_lines(page, size, capabilities).len() {
        ReadProgress::Complete
    } else {
        ReadProgress::UpToLine(read)
    }
}

/// Called after drawing: what was on the screen counts as read.
pub(crate) fn mark_drawn(state: &mut UiState) {
    let ActiveView::Details(page) = &state.view else { return };
    let read = progress_after_draw(state, page);
    if let ActiveView::Details(page) = &mut state.view {
        page.progress = read;
    }
}

/// The lines of a result. All but the last one cover lines of the panels or the page.
pub(crate) fn result_lines(
    text: &str,
    (width, _): (u16, u16),
    capabilities: TerminalCapabilities,
) -> Vec<String> {
    let mut lines = wrap(&capabilities.printable_line(text), usize::from(width));
    lines.truncate(MAX_RESULT_LINES);
    lines
}

/// The lines of a page.
pub(crate) fn page_lines(
    page: &DetailPage,
    (width, _): (u16, u16),
    capabilities: TerminalCapabilities,
) -> Vec<String> {
    let sections = [page.text.as_str(), &page.diagnosis, &page.pane_screen];
    let text = sections.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    wrap(&capabilities.printable(&text), usize::from(width))
}

/// Breaks a text into lines of `width` columns. A line breaks at the last blank in its second half,
/// if there is one.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap_line(line, width.max(2))).collect()
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), line);
    loop {
        let end = fitting_bytes(rest, width);
        if end == rest.len() {
            lines.push(rest.to_owned());
            return lines;
        }
        let blank = rest[..end].rfind(' ').filter(|at| *at > end / 2).map(|at| at + 1);
        let (line, more) = rest.split_at(blank.unwrap_or(end));
        lines.push(line.to_owned());
        rest = more;
    }
}

/// How many bytes of the text fit into `width` columns; at least one grapheme.
pub(crate) fn fitting_bytes(text: &str, width: usize) -> usize {
    let mut taken = 0;
    for grapheme in Span::raw(text).styled_graphemes(ratatui::style::Style::new()) {
        let at = grapheme.symbol.as_ptr() as usize - text.as_ptr() as usize;
        let columns = Span::raw(grapheme.symbol).width();
        if taken + columns > width && at > 0 {
            return at;
        }
        taken += columns;
    }
    text.len()
}

/// A panel on the screen.
pub(crate) struct PanelHeight {
    pub(crate) panel: Panel,
    /// How many lines it has below its title.
    pub(crate) lines: usize,
}

/// The height of each panel, from top to bottom. All panels have an equal share. Lines that a panel
/// does not need go to the active panel first, then to the others.
pub(crate) fn panel_heights(state: &UiState) -> Vec<PanelHeight> {
    let (_, height) = state.size;
    let all = usize::from(height).saturating_sub(FIXED_LINES + Panel::ALL.len());
    let wanted = |panel: Panel| state.items(panel).len();
    let share = |panel| PanelHeight { panel, lines: wanted(panel).min(all / Panel::ALL.len()) };
    let mut heights = Panel::ALL.map(share);
    let mut left = all - heights.iter().map(|height| height.lines).sum::<usize>();
    let (active, others): (Vec<_>, Vec<_>) =
        heights.iter_mut().partition(|height| height.panel == state.panel);
    for height in active.into_iter().chain(others) {
        let more = (wanted(height.panel) - height.lines).min(left);
        height.lines += more;
        left -= more;
    }
    heights.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrap_breaks_at_blanks_and_loses_nothing() {
        assert_eq!(wrap("one two three\n\nfour", 8), ["one two ", "three", "", "four"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("schöne 漢字漢字", 6), ["schöne", " 漢字", "漢字"]);
        let text = "a very long line with words of several lengths".repeat(9);
        assert_eq!(wrap(&text, 13).concat(), text);
    }
}
