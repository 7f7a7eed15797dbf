//! Whether a screen shows a dialog. A profile has the words; the screen has them between frames, wrapped by a narrow
//! pane, with a mark before whichever choice is chosen. So what stands between the words does not count, but for one
//! thing: where the profile's words begin a new line, the screen's do. That tells a question with its choices under it
//! from a text that speaks of it.

/// The first of `dialogs` that the screen shows, its lines from the top.
///
/// Frames, marks before a line, empty lines and all spaces beyond one are left out of both. A space stands for a space
/// or for a line's end, a line's end for itself alone.
pub fn find_dialog<'a>(screen: &str, dialogs: &'a [String]) -> Option<&'a str> {
    let screen: Vec<char> = normalize(screen).chars().collect();
    dialogs.iter().map(String::as_str).find(|words| {
        let words: Vec<char> = normalize(words).chars().collect();
        !words.is_empty() && screen.windows(words.len()).any(|part| is_match(part, &words))
    })
}

/// A character of a box, a line or a shade.
pub fn is_frame_char(c: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&c)
}

/// What stands before a line that is chosen, or before each that can be.
fn is_selection_marker(c: char) -> bool {
    matches!(c, '>' | '❯' | '›' | '▶' | '●' | '•' | '○' | '◉' | ' ')
}

fn is_match(seen: &[char], words: &[char]) -> bool {
    seen.iter().zip(words).all(|(seen, word)| seen == word || (*word == ' ' && *seen == '\n'))
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
    fn frames_marks_and_the_width_of_the_pane_do_not_count() {
        assert!(shows(FRAMED, "Do you want to make this edit"));
        assert!(shows(FRAMED, "edit to a.rs?\n1. Yes\n2. No"));
        assert!(shows(&FRAMED.replace('❯', " ").replace("  2.", "❯ 2."), "a.rs?\n❯ 1. Yes"));
        assert!(!shows(FRAMED, "Do you want to make that edit"));
        assert!(!shows(FRAMED, "1. Yes\n3. No"));
    }

    #[test]
    fn a_text_that_speaks_of_a_dialog_is_none_where_its_choices_must_be_lines() {
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
    fn the_first_that_is_shown_is_told_and_no_words_are_never_shown() {
        let dialogs = ["", " ─ ", "b", "a"].map(str::to_owned);
        assert_eq!(find_dialog("a\nb", &dialogs), Some("b"));
        assert_eq!(find_dialog("", &dialogs), None);
        assert_eq!(find_dialog("a", &[]), None);
    }
}
