//! One thing whole, as lines that fit the screen; and how much of the screen is whose.

use crate::snapshot::Panel;
use crate::state::{DetailPage, ReadProgress, UiState};
use crate::terminal_capabilities::TerminalCapabilities;
use ratatui::text::Span;

/// Less than this shows nothing that helps.
pub(crate) const MIN_SIZE: (u16, u16) = (40, 10);

/// The most lines that what was told takes.
const MAX_RESULT_LINES: usize = 4;

/// What the screen has beside lists and pages: the head, what was told, the keys.
const FIXED_LINES: usize = 3;

/// Whether nothing but that is said.
pub(crate) fn is_too_small((width, height): (u16, u16)) -> bool {
    width < MIN_SIZE.0 || height < MIN_SIZE.1
}

/// The lines that a page has room for, below its title.
pub(crate) fn page_height((_, height): (u16, u16)) -> usize {
    usize::from(height).saturating_sub(FIXED_LINES + 1)
}

/// How far a page has been on the screen, with what is drawn now: without a gap from its first line on, and without the
/// lines that what was told covers.
pub(crate) fn read_progress(
    whole: &DetailPage,
    told: Option<&str>,
    size: (u16, u16),
    manner: TerminalCapabilities,
) -> ReadProgress {
    let ReadProgress::UpToLine(seen) = whole.progress else { return whole.progress };
    if is_too_small(size) || whole.first_line > seen {
        return whole.progress;
    }
    let covered = told.map_or(0, |text| result_lines(text, size, manner).len().saturating_sub(1));
    let seen = seen.max(whole.first_line + page_height(size).saturating_sub(covered));
    if seen >= page_lines(whole, size, manner).len() {
        ReadProgress::Complete
    } else {
        ReadProgress::UpToLine(seen)
    }
}

/// The lines of what was told, of which the first cover the end of what is above.
pub(crate) fn result_lines(text: &str, (width, _): (u16, u16), manner: TerminalCapabilities) -> Vec<String> {
    let mut lines = wrap(&manner.printable_line(text), usize::from(width));
    lines.truncate(MAX_RESULT_LINES);
    lines
}

/// The lines of a page.
pub(crate) fn page_lines(
    whole: &DetailPage,
    (width, _): (u16, u16),
    manner: TerminalCapabilities,
) -> Vec<String> {
    let parts = [whole.text.as_str(), &whole.diagnosis, &whole.pane_screen];
    let text = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    wrap(&manner.printable(&text), usize::from(width))
}

/// Cut into lines of `width` columns, at a blank where there is one in the second half.
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

/// How many bytes of the text fit into `width` columns; at least one letter.
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

/// How many lines each part has below its title, in the order in which they stand. Each has a share; what one does not
/// need goes to the one that has the keys first, then to the others.
pub(crate) fn panel_heights(state: &UiState) -> Vec<(Panel, usize)> {
    let (_, height) = state.size;
    let all = usize::from(height).saturating_sub(FIXED_LINES + Panel::ALL.len());
    let wanted: Vec<(Panel, usize)> =
        Panel::ALL.iter().map(|part| (*part, state.items(*part).len())).collect();
    let mut given: Vec<(Panel, usize)> =
        wanted.iter().map(|(part, wanted)| (*part, (*wanted).min(all / Panel::ALL.len()))).collect();
    let mut left = all - given.iter().map(|(_, lines)| lines).sum::<usize>();
    let first = wanted.iter().filter(|(part, _)| *part == state.panel);
    let others = wanted.iter().filter(|(part, _)| *part != state.panel);
    for (part, wanted) in first.chain(others) {
        if let Some((_, lines)) = given.iter_mut().find(|(of, _)| of == part) {
            let more = (wanted - *lines).min(left);
            *lines += more;
            left -= more;
        }
    }
    given
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
