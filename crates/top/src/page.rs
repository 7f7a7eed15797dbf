//! One thing whole, as lines that fit the screen; and how much of the screen is whose.

use crate::manner::Manner;
use crate::sight::Part;
use crate::state::{Read, State, Whole};
use ratatui::text::Span;

/// Less than this shows nothing that helps.
pub(crate) const LEAST: (u16, u16) = (40, 10);

/// The most lines that what was told takes.
const TOLD: usize = 4;

/// What the screen has beside lists and pages: the head, what was told, the keys.
const OUTSIDE: usize = 3;

/// Whether nothing but that is said.
pub(crate) fn is_too_small((width, height): (u16, u16)) -> bool {
    width < LEAST.0 || height < LEAST.1
}

/// The lines that a page has room for, below its title.
pub(crate) fn room((_, height): (u16, u16)) -> usize {
    usize::from(height).saturating_sub(OUTSIDE + 1)
}

/// How far a page has been on the screen, with what is drawn now: without a gap from its first line on, and without the
/// lines that what was told covers.
pub(crate) fn read(whole: &Whole, told: Option<&str>, size: (u16, u16), manner: Manner) -> Read {
    let Read::To(seen) = whole.read else { return whole.read };
    if is_too_small(size) || whole.top > seen {
        return whole.read;
    }
    let covered = told.map_or(0, |text| told_lines(text, size, manner).len().saturating_sub(1));
    let seen = seen.max(whole.top + room(size).saturating_sub(covered));
    if seen >= lines(whole, size, manner).len() { Read::ToItsEnd } else { Read::To(seen) }
}

/// The lines of what was told, of which the first cover the end of what is above.
pub(crate) fn told_lines(text: &str, (width, _): (u16, u16), manner: Manner) -> Vec<String> {
    let mut lines = wrapped(&manner.line(text), usize::from(width));
    lines.truncate(TOLD);
    lines
}

/// The lines of a page.
pub(crate) fn lines(whole: &Whole, (width, _): (u16, u16), manner: Manner) -> Vec<String> {
    let parts = [whole.text.as_str(), &whole.why, &whole.screen];
    let text = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    wrapped(&manner.text(&text), usize::from(width))
}

/// Cut into lines of `width` columns, at a blank where there is one in the second half.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrapped_line(line, width.max(2))).collect()
}

fn wrapped_line(line: &str, width: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), line);
    loop {
        let end = fitting(rest, width);
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
pub(crate) fn fitting(text: &str, width: usize) -> usize {
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
pub(crate) fn shares(state: &State) -> Vec<(Part, usize)> {
    let (_, height) = state.size;
    let all = usize::from(height).saturating_sub(OUTSIDE + Part::ALL.len());
    let wanted: Vec<(Part, usize)> = Part::ALL.iter().map(|part| (*part, state.items(*part).len())).collect();
    let mut given: Vec<(Part, usize)> =
        wanted.iter().map(|(part, wanted)| (*part, (*wanted).min(all / Part::ALL.len()))).collect();
    let mut left = all - given.iter().map(|(_, lines)| lines).sum::<usize>();
    let first = wanted.iter().filter(|(part, _)| *part == state.part);
    let others = wanted.iter().filter(|(part, _)| *part != state.part);
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
    fn lines_are_cut_at_blanks_or_where_they_must_and_lose_nothing() {
        assert_eq!(wrapped("one two three\n\nfour", 8), ["one two ", "three", "", "four"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("schöne 漢字漢字", 6), ["schöne", " 漢字", "漢字"]);
        let text = "a very long line with words of several lengths".repeat(9);
        assert_eq!(wrapped(&text, 13).concat(), text);
    }
}
