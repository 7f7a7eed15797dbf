//! What the terminal can show: colours or not, Unicode or only ASCII. All texts of other programs
//! pass [`TerminalCapabilities::printable`] before they are drawn on the screen.

use protocol::escape_control_chars::visible;
use ratatui::style::{Color, Style};

/// What the terminal can show, by the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalCapabilities {
    pub(crate) colors: ColorSupport,
    pub(crate) charset: Charset,
}

/// Whether colours are used. No information is in colours alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorSupport {
    Enabled,
    Disabled,
}

/// The character set of the locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    Unicode,
    Ascii,
}

impl TerminalCapabilities {
    /// Reads `NO_COLOR`, `TERM` and the locale's variables from the environment.
    pub(crate) fn from_env() -> TerminalCapabilities {
        TerminalCapabilities::from_vars(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_vars(variable: impl Fn(&str) -> Option<String>) -> TerminalCapabilities {
        let term = variable("TERM").unwrap_or_default();
        let plain =
            variable("NO_COLOR").is_some() || term.is_empty() || term == "dumb" || term.contains("mono");
        let plain = plain || matches!(term.as_str(), "vt100" | "vt102" | "vt220");
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name)).unwrap_or_default();
        let locale = locale.to_ascii_lowercase().replace('-', "");
        TerminalCapabilities {
            colors: if plain { ColorSupport::Disabled } else { ColorSupport::Enabled },
            charset: if locale.contains("utf8") { Charset::Unicode } else { Charset::Ascii },
        }
    }

    /// The style of a colour. Without colours the default style.
    pub(crate) fn color_style(self, color: Color) -> Style {
        match self.colors {
            ColorSupport::Enabled => Style::new().fg(color),
            ColorSupport::Disabled => Style::new(),
        }
    }

    /// The style for a member's colour. `name` is the colour's name in the team files. An unknown
    /// name gets the default style.
    pub(crate) fn member_style(self, name: &str) -> Style {
        match name {
            "red" => self.color_style(Color::Red),
            "green" => self.color_style(Color::Green),
            "yellow" => self.color_style(Color::Yellow),
            "blue" => self.color_style(Color::Blue),
            "purple" => self.color_style(Color::Magenta),
            "cyan" => self.color_style(Color::Cyan),
            "orange" => self.color_style(Color::Indexed(208)),
            "pink" => self.color_style(Color::Indexed(205)),
            _ => Style::new(),
        }
    }

    /// The first text if the locale is Unicode, or else the second.
    pub(crate) fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    /// Makes a text of another program safe to print; the text may have several lines. Control
    /// characters and invisible characters are escaped. In an ASCII locale, characters outside
    /// ASCII are replaced.
    pub(crate) fn printable(self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in visible(text).chars() {
            match c {
                '\t' => shown.push_str("    "),
                c if is_invisible(c) => shown.extend(c.escape_unicode()),
                c if self.charset == Charset::Ascii && !c.is_ascii() => shown.push(to_ascii(c)),
                c => shown.push(c),
            }
        }
        shown
    }

    /// As [`TerminalCapabilities::printable`], but joins the lines of the text to one line.
    pub(crate) fn printable_line(self, text: &str) -> String {
        self.printable(&text.replace(['\n', '\r', '\t'], " "))
    }
}

/// Whether a character is invisible: it takes no space on the screen, and is no accent or other
/// mark on a visible character. Invisible characters could make a text, such as a request, look
/// like another text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
        | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Replaces a character outside ASCII: the screen's own symbols by similar ones, others by `?`.
fn to_ascii(c: char) -> char {
    match c {
        '…' => '~',
        '─' | '–' | '—' => '-',
        '│' | '├' => '|',
        '└' => '`',
        '┘' | '┐' | '┌' | '┼' | '┤' | '┴' | '┬' => '+',
        '←' => '<',
        '·' => '.',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(pairs: &[(&str, &str)]) -> TerminalCapabilities {
        TerminalCapabilities::from_vars(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn capabilities_follow_the_environment() {
        let full = TerminalCapabilities { colors: ColorSupport::Enabled, charset: Charset::Unicode };
        assert_eq!(capabilities(&[("TERM", "tmux-256color"), ("LANG", "de_DE.UTF-8")]), full);
        for plain in
            [&[("TERM", "xterm"), ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[("TERM", "xterm-mono")], &[]]
        {
            assert_eq!(capabilities(plain).colors, ColorSupport::Disabled, "{plain:?}");
        }
        for ascii in [&[("LANG", "C")][..], &[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")], &[]] {
            assert_eq!(capabilities(ascii).charset, Charset::Ascii, "{ascii:?}");
        }
        assert_eq!(capabilities(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]).charset, Charset::Unicode);
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let full = TerminalCapabilities { colors: ColorSupport::Enabled, charset: Charset::Unicode };
        assert_eq!(
            full.printable("a\u{1b}[2J\u{202e}b\u{200b}c\t\u{e0041}"),
            "a\\u{1b}[2J\\u{202e}b\\u{200b}c    \\u{e0041}"
        );
        assert_eq!(full.printable_line("schön\n🪜"), "schön 🪜");
        assert_eq!(
            TerminalCapabilities { charset: Charset::Ascii, ..full }.printable_line("schön … ─"),
            "sch?n ~ -"
        );
    }
}
