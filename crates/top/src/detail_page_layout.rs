//! The layout of a detail page and of the lines around it.

use crate::screen_areas::page_area;
use crate::styled_output_lines::styled_lines;
use crate::terminal_capabilities::TerminalCapabilities;
use crate::ui_events_and_effects::MemberOutput;
use crate::ui_state::{ActiveView, DetailPage, ReadProgress, UiState};
use ratatui::text::Span;

/// The smallest usable size, in columns and lines.
pub(crate) const MIN_SIZE: (u16, u16) = (40, 10);

/// How many lines the result of an action takes at most.
const MAX_RESULT_LINES: usize = 4;

/// Whether the size is below [`MIN_SIZE`]. The screen then shows only `too small`.
pub(crate) fn is_too_small((width, height): (u16, u16)) -> bool {
    width < MIN_SIZE.0 || height < MIN_SIZE.1
}

/// How many lines of a page fit below its title.
pub(crate) fn page_height(size: (u16, u16)) -> usize {
    usize::from(page_area(size).height).saturating_sub(1)
}

/// Returns how far the user will have read a detail page when `state` has been drawn. The text of
/// an action's result can cover the last lines of the page. Covered lines do not count as read.
pub(crate) fn progress_after_draw(state: &UiState, page: &DetailPage) -> ReadProgress {
    let (size, capabilities) = (state.size, state.capabilities);
    let ReadProgress::UpToLine(read) = page.progress else { return page.progress };
    if is_too_small(size) || page.first_line > read {
        return page.progress;
    }
    let result = state.result.as_ref().map(|result| result_lines(&result.text, size, capabilities).len());
    let covered = result.unwrap_or_default().saturating_sub(1);
    let read = read.max(page.first_line + page_height(size).saturating_sub(covered));
    if read >= page_lines(state, page).len() { ReadProgress::Complete } else { ReadProgress::UpToLine(read) }
}

/// Records that the user has seen the lines of the page that were just drawn.
pub(crate) fn mark_drawn(state: &mut UiState) {
    if state.view == ActiveView::Help {
        return;
    }
    let read = state.page.as_ref().map(|page| progress_after_draw(state, page));
    if let Some((page, read)) = state.page.as_mut().zip(read) {
        page.progress = read;
    }
}

/// Breaks the text of an action's result into lines. One line of the screen is reserved for this
/// text. If the text has more lines, they cover the end of the panels or of the detail page.
pub(crate) fn result_lines(
    text: &str,
    (width, _): (u16, u16),
    capabilities: TerminalCapabilities,
) -> Vec<String> {
    let mut lines = wrap(&capabilities.printable_line(text), usize::from(width));
    lines.truncate(MAX_RESULT_LINES);
    lines
}

/// A line of a page.
type PageLine = Vec<Span<'static>>;

/// The lines of a page. The page of a member ends with its output.
pub(crate) fn page_lines(state: &UiState, page: &DetailPage) -> Vec<PageLine> {
    let sections = [page.text.as_str(), &page.diagnosis];
    let text = sections.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    let width = usize::from(page_area(state.size).width);
    let lines = wrap(&state.capabilities.printable(&text), width);
    let mut lines: Vec<PageLine> = lines.into_iter().map(|line| vec![Span::raw(line)]).collect();
    if let Some(output) = &page.output {
        let room = page_height(state.size).saturating_sub(lines.len() + 2);
        lines.extend(output_lines(state, output, room));
    }
    lines
}

/// Returns the lines that show a member's output on the detail page: a heading and the output.
/// While the lists have the keyboard focus, the user cannot scroll the page. So only the last
/// `room` lines of the output are shown then.
fn output_lines(state: &UiState, output: &MemberOutput, room: usize) -> Vec<PageLine> {
    let heading = match output {
        MemberOutput::Screen(_) => "its pane shows",
        MemberOutput::Log(_) => "its output ends",
    };
    let width = usize::from(page_area(state.size).width);
    let lines = styled_lines(output.text(), state.capabilities);
    let mut lines: Vec<PageLine> = lines.into_iter().flat_map(|line| wrap_styled(line, width)).collect();
    if lines.is_empty() {
        return lines;
    }
    let hidden = match state.view {
        ActiveView::Lists => lines.len().saturating_sub(room.max(1)),
        ActiveView::Details | ActiveView::Help => 0,
    };
    lines.drain(..hidden);
    let heading =
        if hidden == 0 { format!("{heading}:") } else { format!("{heading}, {hidden} lines above:") };
    lines.splice(..0, [Vec::new(), vec![Span::raw(heading)]]);
    lines
}

/// Breaks a line as [`wrap`] does, and keeps the styles of its parts.
fn wrap_styled(line: PageLine, width: usize) -> Vec<PageLine> {
    let text: String = line.iter().map(|span| &*span.content).collect();
    let mut parts = line.into_iter().flat_map(|span| {
        let style = span.style;
        span.content.chars().map(move |c| (c, style)).collect::<Vec<_>>()
    });
    let mut style_line = |line: String| {
        let mut spans: PageLine = Vec::new();
        for (c, style) in parts.by_ref().take(line.chars().count()) {
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push(c),
                None => spans.push(Span::styled(c.to_string(), style)),
            }
        }
        spans
    };
    wrap_line(&text, width.max(2)).into_iter().map(&mut style_line).collect()
}

/// Breaks each line of `text` into lines of at most `width` columns. A line is broken at the last
/// blank in its second half, or at `width` if there is no such blank.
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

/// How many bytes of the text fit into `width` columns. The result includes at least one grapheme.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_line_keeps_its_styles() {
        let (red, plain) = (ratatui::style::Style::new().fg(ratatui::style::Color::Red), Span::raw);
        let line = vec![plain("abc d"), Span::styled("é漢f", red)];
        assert_eq!(wrap_styled(line, 5), [vec![plain("abc ")], vec![plain("d"), Span::styled("é漢f", red)]]);
    }

    #[test]
    fn wrap_breaks_at_spaces_and_keeps_all_text() {
        assert_eq!(wrap("one two three\n\nfour", 8), ["one two ", "three", "", "four"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("schöne 漢字漢字", 6), ["schöne", " 漢字", "漢字"]);
        let text = "a very long line with words of several lengths".repeat(9);
        assert_eq!(wrap(&text, 13).concat(), text);
    }
}
