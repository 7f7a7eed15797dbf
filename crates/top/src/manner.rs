//! How the terminal takes what we draw: with colours or without, in Unicode or in ASCII. And the one way in which text
//! gets onto the screen: harmless.

use protocol::terminal::visible;
use ratatui::style::{Color, Style};

/// What the environment says of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) colors: Colors,
    pub(crate) letters: Letters,
}

/// Whether there is colour. What it says, words say too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colors {
    Shown,
    None,
}

/// What the locale takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letters {
    Unicode,
    Ascii,
}

impl Manner {
    /// `NO_COLOR`, `TERM`, and the locale.
    pub(crate) fn of_environment() -> Manner {
        Manner::of(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Manner {
        let term = variable("TERM").unwrap_or_default();
        let plain =
            variable("NO_COLOR").is_some() || term.is_empty() || term == "dumb" || term.contains("mono");
        let plain = plain || matches!(term.as_str(), "vt100" | "vt102" | "vt220");
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name)).unwrap_or_default();
        let locale = locale.to_ascii_lowercase().replace('-', "");
        Manner {
            colors: if plain { Colors::None } else { Colors::Shown },
            letters: if locale.contains("utf8") { Letters::Unicode } else { Letters::Ascii },
        }
    }

    /// The style of that colour, where there is one.
    pub(crate) fn color(self, color: Color) -> Style {
        match self.colors {
            Colors::Shown => Style::new().fg(color),
            Colors::None => Style::new(),
        }
    }

    /// A member's colour, by its name in the protocol.
    pub(crate) fn member(self, name: &str) -> Style {
        match name {
            "red" => self.color(Color::Red),
            "green" => self.color(Color::Green),
            "yellow" => self.color(Color::Yellow),
            "blue" => self.color(Color::Blue),
            "purple" => self.color(Color::Magenta),
            "cyan" => self.color(Color::Cyan),
            "orange" => self.color(Color::Indexed(208)),
            "pink" => self.color(Color::Indexed(205)),
            _ => Style::new(),
        }
    }

    /// The first where the terminal takes it, else the second.
    pub(crate) fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.letters {
            Letters::Unicode => unicode,
            Letters::Ascii => ascii,
        }
    }

    /// Text from anybody over several lines: what steers a terminal or hides is spelled out, and what the locale has no
    /// letters for is a question mark.
    pub(crate) fn text(self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in visible(text).chars() {
            match c {
                '\t' => shown.push_str("    "),
                c if hides(c) => shown.extend(c.escape_unicode()),
                c if self.letters == Letters::Ascii && !c.is_ascii() => shown.push(ascii(c)),
                c => shown.push(c),
            }
        }
        shown
    }

    /// The same on one line.
    pub(crate) fn line(self, text: &str) -> String {
        self.text(&text.replace(['\n', '\r', '\t'], " "))
    }
}

/// Takes no room on the screen and is no part of a letter: what a request says must not be there unseen.
fn hides(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
        | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Our own marks have likenesses.
fn ascii(c: char) -> char {
    match c {
        '…' => '~',
        '─' | '–' | '—' => '-',
        '·' => '.',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Manner {
        Manner::of(|name| pairs.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_says_what_the_terminal_takes() {
        let whole = Manner { colors: Colors::Shown, letters: Letters::Unicode };
        assert_eq!(of(&[("TERM", "tmux-256color"), ("LANG", "de_DE.UTF-8")]), whole);
        for plain in
            [&[("TERM", "xterm"), ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[("TERM", "xterm-mono")], &[]]
        {
            assert_eq!(of(plain).colors, Colors::None, "{plain:?}");
        }
        for ascii in [&[("LANG", "C")][..], &[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")], &[]] {
            assert_eq!(of(ascii).letters, Letters::Ascii, "{ascii:?}");
        }
        assert_eq!(of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]).letters, Letters::Unicode);
    }

    #[test]
    fn nothing_steers_the_terminal_or_hides() {
        let whole = Manner { colors: Colors::Shown, letters: Letters::Unicode };
        assert_eq!(
            whole.text("a\u{1b}[2J\u{202e}b\u{200b}c\t\u{e0041}"),
            "a\\u{1b}[2J\\u{202e}b\\u{200b}c    \\u{e0041}"
        );
        assert_eq!(whole.line("schön\n🪜"), "schön 🪜");
        assert_eq!(Manner { letters: Letters::Ascii, ..whole }.line("schön … ─"), "sch?n ~ -");
    }
}
