//! Makes untrusted text safe for a terminal.
//!
//! An escape sequence in a message can change what a person sees, write to the clipboard or send
//! input to the terminal. So all control characters of untrusted text are escaped before output.

/// Escapes control characters and bidirectional formatting characters in `text`, in the form
/// `\u{1b}`. This includes the C1 control characters U+0080 to U+009F. Newline and tab are kept. A
/// carriage return before a newline is removed.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' && rest.peek() == Some(&'\n') {
            continue;
        }
        if is_control(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Escapes control characters and bidirectional formatting characters in a JSON text. JSON escapes
/// are used, so the JSON value is unchanged. JSON encoders escape no character from U+007F on, so
/// these characters would otherwise reach the terminal.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match is_control(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

fn is_control(c: char) -> bool {
    let is_bidi_control =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidi_control || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\u{1b}[2Jb\r"), "a\\u{1b}[2Jb\\u{d}");
        assert_eq!(visible("\u{9b}1m\u{7f}\0"), "\\u{9b}1m\\u{7f}\\u{0}");
        assert_eq!(visible("\u{202e}txt"), "\\u{202e}txt");
        assert_eq!(visible("a\r\nb\r\n"), "a\nb\n", "Windows line ends");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "\u{9b}1m\u{7f}\u{202e}\u{1b}é";
        let shown = visible_json(&serde_json::to_string(text).unwrap());
        assert_eq!(shown, r#""\u009b1m\u007f\u202e\u001bé""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn other_characters_are_kept() {
        let text = "schön\tlangsam 🪜\n“x”";
        assert_eq!(visible(text), text);
    }
}
