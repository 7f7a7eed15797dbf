//! Text from agents, made fit for a terminal. An escape sequence in a message can rewrite what a person
//! sees, fill the clipboard or answer a query; so nothing that steers a terminal gets there.

/// `text` with control characters, C1 and characters that turn the reading direction written as
/// `\u{1b}`; newline and tab stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text of a JSON object with the same characters in the escapes of JSON: what is said stays what it was. An encoder
/// leaves those beyond ASCII as they are.
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
    let directs =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out() {
        assert_eq!(visible("a\u{1b}[2Jb\r"), "a\\u{1b}[2Jb\\u{d}");
        assert_eq!(visible("\u{9b}1m\u{7f}\0"), "\\u{9b}1m\\u{7f}\\u{0}");
        assert_eq!(visible("\u{202e}txt"), "\\u{202e}txt");
    }

    #[test]
    fn an_object_says_what_it_said_and_steers_nothing() {
        let text = "\u{9b}1m\u{7f}\u{202e}\u{1b}é";
        let shown = visible_json(&serde_json::to_string(text).unwrap());
        assert_eq!(shown, r#""\u009b1m\u007f\u202e\u001bé""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn the_rest_stays() {
        let text = "schön\tlangsam 🪜\n“x”";
        assert_eq!(visible(text), text);
    }
}
