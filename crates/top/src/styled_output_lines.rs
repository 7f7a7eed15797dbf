//! Converts the terminal output of a program to lines with the program's colors. Only the sequences
//! that set colors and attributes (SGR) have an effect. All other escape sequences are removed.

use crate::terminal_capabilities::{ColorSupport, TerminalCapabilities};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// The eight basic colors, in the order of their SGR codes.
const BASIC_COLORS: [Color; 8] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
];

/// The characters that begin and end letters of the line drawing character set.
const LINE_DRAWING_ON: char = '\u{e}';
const LINE_DRAWING_OFF: char = '\u{f}';

/// The lines of the output. Of each line, only the text after the last carriage return is kept,
/// because that text has overwritten the rest.
pub(crate) fn styled_lines(output: &str, capabilities: TerminalCapabilities) -> Vec<Vec<Span<'static>>> {
    let mut state = OutputState { style: Style::new(), charset: LetterSet::Text };
    output.lines().map(|line| styled_line(line, &mut state, capabilities)).collect()
}

/// What lasts from one line to the next.
struct OutputState {
    style: Style,
    charset: LetterSet,
}

/// What letters stand for.
#[derive(PartialEq)]
enum LetterSet {
    Text,
    LineDrawing,
}

/// `state` is the state at the start of the line, and afterwards the state at its end.
fn styled_line(
    line: &str,
    state: &mut OutputState,
    capabilities: TerminalCapabilities,
) -> Vec<Span<'static>> {
    let (mut spans, mut rest) = (Vec::new(), line.trim_end_matches('\r'));
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix([LINE_DRAWING_ON, LINE_DRAWING_OFF]) {
            state.charset =
                if rest.starts_with(LINE_DRAWING_ON) { LetterSet::LineDrawing } else { LetterSet::Text };
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix('\r') {
            spans.clear();
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix('\u{1b}') {
            rest = skip_sequence(after, &mut state.style);
            continue;
        }
        let end = rest.find(['\u{1b}', '\r', LINE_DRAWING_ON, LINE_DRAWING_OFF]).unwrap_or(rest.len());
        let text: String = match state.charset {
            LetterSet::LineDrawing => rest[..end].chars().map(to_line_drawing).collect(),
            LetterSet::Text => rest[..end].to_owned(),
        };
        let shown = match capabilities.colors {
            ColorSupport::Enabled => state.style,
            ColorSupport::Disabled => Style::new(),
        };
        spans.push(Span::styled(capabilities.printable_line(&text), shown));
        rest = &rest[end..];
    }
    spans
}

/// The character that a terminal shows for a letter of the line drawing character set.
fn to_line_drawing(letter: char) -> char {
    let at = "jklmnqtuvwx".find(letter);
    at.and_then(|at| "┘┐┌└┼─├┤┴┬│".chars().nth(at)).unwrap_or(letter)
}

/// Removes an escape sequence from the start of `rest`, and returns the text after it. `rest`
/// begins after the character ESC. A sequence that sets colors changes `style`.
fn skip_sequence<'a>(rest: &'a str, style: &mut Style) -> &'a str {
    let mut chars = rest.chars();
    match chars.next() {
        Some('[') => {
            let body = chars.as_str();
            let Some(end) = body.find(|c: char| ('@'..='~').contains(&c)) else { return "" };
            // A body that begins with one of these characters is a private sequence, no SGR.
            if body[end..].starts_with('m') && !body.starts_with(['<', '=', '>', '?']) {
                *style = style_after(*style, &body[..end]);
            }
            &body[end + 1..]
        }
        // A string: it ends with BEL or with ESC and a backslash.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let body = chars.as_str();
            body.find(['\u{7}', '\u{1b}']).map_or("", |end| {
                let after = &body[end + 1..];
                after.strip_prefix('\\').unwrap_or(after)
            })
        }
        Some(' '..='/') => {
            chars.next();
            chars.as_str()
        }
        _ => chars.as_str(),
    }
}

/// The style after the SGR sequence with these parameters. An empty parameter means 0. Unknown
/// parameters have no effect. Parameters with a colon have no effect either: they set forms of
/// underlines or, rarely, colors.
fn style_after(mut style: Style, parameters: &str) -> Style {
    let is_plain = |parameter: &&str| !parameter.contains(':');
    let number = |parameter: &str| if parameter.is_empty() { Some(0) } else { parameter.parse().ok() };
    let mut codes = parameters.split(';').filter(is_plain).filter_map(number);
    while let Some(code) = codes.next() {
        style = match code {
            0 => Style::new(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            30..=37 => style.fg(BASIC_COLORS[usize::from(code - 30)]),
            40..=47 => style.bg(BASIC_COLORS[usize::from(code - 40)]),
            90..=97 => style.fg(Color::Indexed(code - 90 + 8)),
            100..=107 => style.bg(Color::Indexed(code - 100 + 8)),
            38 => extended_color(&mut codes).map_or(style, |color| style.fg(color)),
            48 => extended_color(&mut codes).map_or(style, |color| style.bg(color)),
            // The color of underlines, which is not shown.
            58 => extended_color(&mut codes).map_or(style, |_| style),
            39 => style.fg(Color::Reset),
            49 => style.bg(Color::Reset),
            _ => style,
        };
    }
    style
}

/// The color of the parameters `5;N` or `2;R;G;B`.
fn extended_color(codes: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match codes.next()? {
        5 => codes.next().map(Color::Indexed),
        2 => Some(Color::Rgb(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal_capabilities::Charset;

    const FULL: TerminalCapabilities =
        TerminalCapabilities { colors: ColorSupport::Enabled, charset: Charset::Unicode };

    #[test]
    fn colors_are_kept_and_other_sequences_removed() {
        let output = "\u{1b}[2J\u{1b}[1;31mred\u{1b}[0m plain\u{1b}]0;title\u{7}\u{1b}(B\n\
            old\rnew\u{1b}[38;5;208mo\u{1b}[38;2;1;2;3mr\u{1b}[39m.\u{9b}\r\n\u{1b}[93;44mx\u{1b}[";
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let lines = styled_lines(output, FULL);
        assert_eq!(lines[0], [Span::styled("red", red), Span::raw(" plain")]);
        let colors: Vec<_> = lines[1].iter().map(|span| (&*span.content, span.style.fg)).collect();
        let expected = [
            ("new", None),
            ("o", Some(Color::Indexed(208))),
            ("r", Some(Color::Rgb(1, 2, 3))),
            (".\\u{9b}", Some(Color::Reset)),
        ];
        assert_eq!(colors, expected);
        let last = Style::new().fg(Color::Indexed(11)).bg(Color::Blue);
        assert_eq!(lines[2], [Span::styled("x", last)]);
    }

    #[test]
    fn letters_of_the_line_drawing_set_become_lines() {
        assert_eq!(
            styled_lines("a\u{e}lqk\u{f}q", FULL),
            [[Span::raw("a"), Span::raw("┌─┐"), Span::raw("q")]]
        );
    }

    #[test]
    fn line_drawing_lasts_beyond_the_line() {
        assert_eq!(styled_lines("\u{e}lqk\nx\u{f}x", FULL)[1], [Span::raw("│"), Span::raw("x")]);
    }

    #[test]
    fn private_sequences_and_forms_of_underlines_have_no_effect() {
        for sequence in ["[>4;2m", "[4:3m", "[58;2;255;0;0m", "[58;5;1m", "[999m"] {
            let red = Style::new().fg(Color::Red);
            let output = format!("\u{1b}[31m\u{1b}{sequence}a");
            assert_eq!(styled_lines(&output, FULL), [[Span::styled("a", red)]], "{sequence}");
        }
    }

    #[test]
    fn style_lasts_beyond_the_line_and_is_left_out_without_colors() {
        let green = Style::new().fg(Color::Green);
        let output = "\u{1b}[32ma\nb";
        assert_eq!(styled_lines(output, FULL)[1], [Span::styled("b", green)]);
        let plain = TerminalCapabilities { colors: ColorSupport::Disabled, ..FULL };
        assert_eq!(styled_lines(output, plain), [[Span::raw("a")], [Span::raw("b")]]);
    }
}
