//! The line of a film that shows its position, its length and its speed, and where failures and
//! requests are.

use crate::film::film_commands_and_status::FilmStatus;
use crate::film::film_marks::{FilmMark, MarkKind};
use crate::film::playback::FilmMotion;
use crate::terminal_capabilities::TerminalCapabilities;
use client::read_team_record::offset_text;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// The smallest useful width of the bar. On a narrower screen, the line has no bar.
const MIN_BAR: usize = 10;

/// The time line of a film on a screen of this width.
pub(super) fn time_line(
    film: &FilmStatus,
    capabilities: TerminalCapabilities,
    width: usize,
) -> Vec<Span<'static>> {
    let motion = match film.playback.motion {
        _ if film.is_at_end() => "at its end",
        FilmMotion::Playing => "playing",
        FilmMotion::Paused => "paused",
    };
    let (position, length) = (offset_text(film.playback.position), offset_text(film.length));
    let text = format!("{motion} {position} of {length}, {}x ", film.playback.speed.as_str());
    let bar = width.saturating_sub(text.len());
    let mut spans = vec![Span::styled(text, Style::new().add_modifier(Modifier::BOLD))];
    if bar >= MIN_BAR {
        spans.extend((0..bar).map(|cell| bar_cell(film, capabilities, cell, bar)));
    }
    spans
}

/// A cell of the bar. A failure is more important than a request in the same cell, and both are more
/// important than the position, which the text has too.
fn bar_cell(film: &FilmStatus, capabilities: TerminalCapabilities, cell: usize, bar: usize) -> Span<'static> {
    let cell_of = |offset: u64| {
        let last_cell = u64::try_from(bar - 1).unwrap_or(0);
        usize::try_from(offset.min(film.length) * last_cell / film.length.max(1)).unwrap_or(0)
    };
    let has_mark = |kind: MarkKind| {
        film.marks.iter().any(|mark: &FilmMark| mark.kind == kind && cell_of(mark.offset) == cell)
    };
    let position = cell_of(film.playback.position);
    match () {
        () if has_mark(MarkKind::Failure) => Span::styled("!", capabilities.color_style(Color::Red)),
        () if has_mark(MarkKind::Request) => Span::styled("?", capabilities.color_style(Color::Yellow)),
        () if cell == position => Span::raw(capabilities.glyph("●", "O")),
        () if cell < position => Span::raw(capabilities.glyph("━", "=")),
        () => Span::raw(capabilities.glyph("─", "-")),
    }
}
