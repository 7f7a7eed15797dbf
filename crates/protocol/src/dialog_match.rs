//! Detects dialogs on a terminal screen. A dialog is a question that a program shows while it waits
//! for a key.
//!
//! A profile lists the text of each dialog. On the screen the same text has frames around it, wraps
//! at the width of the pane, and has a marker before the selected choice. The comparison ignores
//! these differences. But each line of the profile's text must start a new line on the screen. So
//! the comparison distinguishes a question with its choices below it from a sentence that quotes
//! the question.

/// Returns the first of `dialogs` that is on the screen. `screen` holds the screen's lines from the
/// top.
///
/// Frames, markers at the start of a line, empty lines and repeated spaces are removed from both
/// texts. A space in a dialog matches a space or a line end. A line end in a dialog matches only a
/// line end.
pub fn find_dialog<'a>(screen: &str, dialogs: &'a [String]) -> Option<&'a str> {
    let screen: Vec<char> = normalize(screen).chars().collect();
    dialogs.iter().map(String::as_str).find(|words| {
        let words: Vec<char> = normalize(words).chars().collect();
        !words.is_empty() && screen.windows(words.len()).any(|part| is_match(part, &words))
    })
}

/// Whether `c` is a box-drawing or block character.
pub fn is_frame_char(c: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&c)
}

/// Whether `c` can stand before a selected or selectable line.
fn is_selection_marker(c: char) -> bool {
    matches!(c, '>' | '❯' | '›' | '▶' | '●' | '•' | '○' | '◉' | ' ')
}

fn is_match(screen: &[char], words: &[char]) -> bool {
    screen.iter().zip(words).all(|(shown, word)| shown == word || (*word == ' ' && *shown == '\n'))
}

fn normalize(text: &str) -> String {
    let lines = text.lines().map(normalize_line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn normalize_line(line: &str) -> String {
    let unframed: String = line.chars().map(|c| if is_frame_char(c) { ' ' } else { c }).collect();
    let words = unframed.split_whitespace().collect::<Vec<_>>().join(" ");
    words.trim_start_matches(is_selection_marker).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMED: &str = "\
 some output before
╭──────────────────────────────╮
│ Do you want to   make this   │
│ edit to a.rs?                │
│                              │
│ ❯ 1. Yes                     │
│   2. No                      │
╰──────────────────────────────╯
";

    fn shows(screen: &str, words: &str) -> bool {
        find_dialog(screen, &[words.to_owned()]).is_some()
    }

    #[test]
    fn frames_markers_and_line_wraps_are_ignored() {
        assert!(shows(FRAMED, "Do you want to make this edit"));
        assert!(shows(FRAMED, "edit to a.rs?\n1. Yes\n2. No"));
        assert!(shows(&FRAMED.replace('❯', " ").replace("  2.", "❯ 2."), "a.rs?\n❯ 1. Yes"));
        assert!(!shows(FRAMED, "Do you want to make that edit"));
        assert!(!shows(FRAMED, "1. Yes\n3. No"));
    }

    #[test]
    fn text_that_quotes_a_dialog_does_not_match() {
        let question = "Do you want to proceed?\n1. Yes";
        for text in [
            "dialog = [\"Do you want to proceed?\\n1. Yes\"]",
            "It asks: Do you want to proceed? 1. Yes, 2. No",
            "● Do you want to proceed?\n\n> ",
            "1. Yes\nDo you want to proceed?",
        ] {
            assert!(!shows(text, question), "{text}");
        }
        assert!(shows("● Do you want to proceed?\n\n  > 1. Yes", question));
    }

    #[test]
    fn first_shown_dialog_is_found_and_empty_text_never_matches() {
        let dialogs = ["", " ─ ", "b", "a"].map(str::to_owned);
        assert_eq!(find_dialog("a\nb", &dialogs), Some("b"));
        assert_eq!(find_dialog("", &dialogs), None);
        assert_eq!(find_dialog("a", &[]), None);
    }
}
