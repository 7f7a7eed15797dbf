//! Detects dialogs on a terminal screen. A dialog is a question that a program shows while it waits
//! for a key.
//!
//! A profile lists the text of each dialog. On the screen, the program draws a frame around this
//! text and a marker before the selected choice, and the pane's width wraps the text. The
//! comparison ignores these differences. In the profile's text, each line after the first must also
//! begin a line of the screen. So a sentence that quotes the question and its choices in one line
//! does not match.

/// Returns the first of `dialogs` that is on the screen. `screen` holds the screen's lines from the
/// top.
///
/// Drawn frames, markers at the start of a line, empty lines and repeated spaces are ignored. A
/// space in a dialog matches a space or a line end on the screen. A line end in a dialog matches
/// only a line end.
///
/// If the last line of a dialog's text is `$`, the dialog matches only at the end of the screen,
/// with at most one line below it. So a text that quotes the dialog does not match, because the
/// program shows its own prompt below the text.
pub fn find_dialog<'a>(screen: &str, dialogs: &'a [String]) -> Option<&'a str> {
    let screen: Vec<char> = normalize(screen).chars().collect();
    dialogs.iter().map(String::as_str).find(|words| find_end(&screen, words).is_some())
}

/// Returns the question of a dialog on the screen. The lines below the dialog are ignored. Among
/// the other lines, the last line that ends with `?` is the question. If this line begins with a
/// lowercase letter, it continues the line above, and so on up to four lines. `None` if no line
/// ends with `?`, or if the screen does not show the dialog.
pub fn dialog_question(screen: &str, dialog: &str) -> Option<String> {
    let screen: Vec<char> = normalize(screen).chars().collect();
    let end = find_end(&screen, dialog)?;
    let shown: String = screen[..end].iter().collect();
    let lines: Vec<&str> = shown.lines().collect();
    let last = lines.iter().rposition(|line| line.ends_with('?'))?;
    let continues = |line: &str| line.starts_with(|c: char| c.is_lowercase());
    let first = (0..=last).rev().find(|at| !continues(lines[*at])).unwrap_or(last);
    let first = first.max(last.saturating_sub(MAX_QUESTION_LINES - 1));
    Some(lines[first..=last].join(" "))
}

/// The maximum length of a question, in lines of the screen.
const MAX_QUESTION_LINES: usize = 4;

/// The index in `screen` after the dialog. `None` if the screen does not show it.
fn find_end(screen: &[char], dialog: &str) -> Option<usize> {
    let words = normalize(dialog);
    let (words, is_footer) = words.strip_suffix("\n$").map_or((&*words, false), |words| (words, true));
    let words: Vec<char> = words.chars().collect();
    let mut parts = screen.windows(words.len().max(1)).enumerate();
    let ends_screen = |end: usize| screen[end..].iter().filter(|c| **c == '\n').count() <= 1;
    let is_shown = |start: usize, part: &[char]| {
        is_match(part, &words) && (!is_footer || ends_screen(start + words.len()))
    };
    parts
        .find(|(start, part)| !words.is_empty() && is_shown(*start, part))
        .map(|(start, _)| start + words.len())
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

    fn has_dialog(screen: &str, dialog: &str) -> bool {
        find_dialog(screen, &[dialog.to_owned()]).is_some()
    }

    #[test]
    fn frames_markers_and_line_wraps_are_ignored() {
        assert!(has_dialog(FRAMED, "Do you want to make this edit"));
        assert!(has_dialog(FRAMED, "edit to a.rs?\n1. Yes\n2. No"));
        assert!(has_dialog(&FRAMED.replace('❯', " ").replace("  2.", "❯ 2."), "a.rs?\n❯ 1. Yes"));
        assert!(!has_dialog(FRAMED, "Do you want to make that edit"));
        assert!(!has_dialog(FRAMED, "1. Yes\n3. No"));
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
            assert!(!has_dialog(text, question), "{text}");
        }
        assert!(has_dialog("● Do you want to proceed?\n\n  > 1. Yes", question));
    }

    #[test]
    fn footer_must_end_the_screen() {
        let dialog = ["1. Yes\nEnter to select\n$".to_owned()];
        assert!(find_dialog("Which?\n 1. Yes\n\nEnter to select · Esc to\ncancel\n\n", &dialog).is_some());
        assert!(
            find_dialog("Which?\n 1. Yes\nEnter to select\n Done in 1s\n > \n manual mode", &dialog)
                .is_none()
        );
    }

    #[test]
    fn question_is_read_from_the_screen() {
        let dialog = "1. Yes\nEnter to select\n$";
        let question = |screen: &str| dialog_question(screen, dialog);
        let long = "Done.\n│ Which of these should it use, given that\n│ the disk is small?\n\n❯ 1. Yes\nEnter to select";
        assert_eq!(
            question(long).as_deref(),
            Some("Which of these should it use, given that the disk is small?")
        );
        assert_eq!(question("Pick one\n1. Yes\nEnter to select"), None);
        assert_eq!(question("Which?\nno dialog"), None);
    }

    #[test]
    fn first_shown_dialog_is_found_and_empty_text_never_matches() {
        let dialogs = ["", " ─ ", "b", "a"].map(str::to_owned);
        assert_eq!(find_dialog("a\nb", &dialogs), Some("b"));
        assert_eq!(find_dialog("", &dialogs), None);
        assert_eq!(find_dialog("a", &[]), None);
    }
}
