//! Draws the time line of a film, which plays a recorded team: the film's position, length and
//! speed, and where in the film failures and requests are.

use crate::film::film_commands_and_status::FilmStatus;
use crate::film::film_marks::MarkKind;
use crate::film::playback::FilmMotion;
use crate::terminal_capabilities::TerminalCapabilities;
use client::read_team_record::offset_text;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use std::cmp::Ordering;

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
        spans.extend(bar_cells(film, capabilities, bar));
    }
    spans
}

/// The `width` cells of the bar, which shows the film's position, failures and requests. One cell
/// can show only one of these: a failure rather than a request, and a request rather than the
/// position. The position is also shown as a text beside the bar.
fn bar_cells(film: &FilmStatus, capabilities: TerminalCapabilities, width: usize) -> Vec<Span<'static>> {
    let cell_of = |offset: u64| {
        let last_cell = u64::try_from(width - 1).unwrap_or(0);
        usize::try_from(offset.min(film.length) * last_cell / film.length.max(1)).unwrap_or(0)
    };
    let position = cell_of(film.playback.position);
    let plain_cell = |cell: usize| match cell.cmp(&position) {
        Ordering::Less => Span::raw(capabilities.glyph("━", "=")),
        Ordering::Equal => Span::raw(capabilities.glyph("●", "O")),
        Ordering::Greater => Span::raw(capabilities.glyph("─", "-")),
    };
    let mut cells: Vec<Span<'static>> = (0..width).map(plain_cell).collect();
    for (kind, sign, color) in [(MarkKind::Request, "?", Color::Yellow), (MarkKind::Failure, "!", Color::Red)]
    {
        for mark in film.marks.iter().filter(|mark| mark.kind == kind) {
            cells[cell_of(mark.offset)] = Span::styled(sign, capabilities.color_style(color));
        }
    }
    cells
}
