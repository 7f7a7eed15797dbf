//! What a screen shows: an empty prompt, a dialog, or neither. Pure.

use profile::PromptPatterns;
use protocol::control::ScreenReply;
use protocol::dialog_match::{find_dialog, is_frame_char};

/// See above.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScreenState {
    EmptyPrompt,
    /// What told that it is one.
    Dialog(String),
    Other,
}

/// What `seen` shows. With frames and runs of spaces taken out of lines.
pub(super) fn classify(patterns: &PromptPatterns, seen: &ScreenReply) -> ScreenState {
    if let Some(dialog) = find_dialog(&seen.screen, &patterns.dialog) {
        return ScreenState::Dialog(dialog.to_owned());
    }
    if is_empty(patterns, seen) { ScreenState::EmptyPrompt } else { ScreenState::Other }
}

fn is_empty(patterns: &PromptPatterns, seen: &ScreenReply) -> bool {
    let line = normalize_line(line_at_cursor(seen, 0));
    patterns.prompt_lines.iter().any(|ready| normalize_line(ready) == line)
}

/// Whether what was written is not in the prompt any more: the cursor has gone elsewhere, and the prompt is empty, or
/// the text's end stands neither before the cursor nor above it, where it does if the key has only begun a new line.
pub(super) fn has_left_prompt(
    patterns: &PromptPatterns,
    now: &ScreenReply,
    written: &ScreenReply,
    text: &str,
) -> bool {
    if now.cursor == written.cursor {
        return false;
    }
    let end = text_tail(text);
    let stands = |above: usize| without_whitespace(line_at_cursor(now, above)).ends_with(&end);
    is_empty(patterns, now) || !end.is_empty() && !stands(0) && !stands(1)
}

/// The end of a text as it is pasted, without what a terminal would take for a command.
fn text_tail(text: &str) -> String {
    let typed: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let last = typed.lines().map(without_whitespace).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.chars().skip(last.chars().count().saturating_sub(TAIL_CHARS)).collect()
}

/// Characters of a text's end that tell it from an empty prompt.
const TAIL_CHARS: usize = 12;

/// The line of the cursor, or one so many above it.
fn line_at_cursor(seen: &ScreenReply, above: usize) -> &str {
    let line = (seen.cursor.1 as usize).checked_sub(above);
    line.and_then(|line| seen.screen.lines().nth(line)).unwrap_or_default()
}

/// Without frames, and with one space for several.
fn normalize_line(line: &str) -> String {
    let unframed: String = line.chars().map(|c| if is_frame_char(c) { ' ' } else { c }).collect();
    unframed.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_whitespace(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace() && !is_frame_char(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(screen: &str, cursor: (u32, u32)) -> ScreenReply {
        ScreenReply { screen: screen.to_owned(), cursor }
    }

    fn prompt() -> PromptPatterns {
        PromptPatterns {
            prompt_lines: vec![">".into(), "> Type here".into()],
            dialog: vec!["Do you trust".into()],
        }
    }

    #[test]
    fn ready_is_an_empty_prompt_under_the_cursor_and_nothing_else() {
        let of = |screen: &str, line: u32| classify(&prompt(), &seen(screen, (2, line)));
        assert_eq!(of("done\n> ", 1), ScreenState::EmptyPrompt);
        assert_eq!(of("╭────╮\n│ >  Type   here │\n╰────╯", 1), ScreenState::EmptyPrompt);
        assert_eq!(of("done\n> a draft", 1), ScreenState::Other);
        assert_eq!(of("> \nworking", 1), ScreenState::Other, "the cursor is elsewhere");
        assert_eq!(of("", 7), ScreenState::Other);
        assert_eq!(of("Do you trust it?\n> ", 1), ScreenState::Dialog("Do you trust".into()));
    }

    #[test]
    fn a_text_has_left_when_the_cursor_moved_and_the_prompt_is_empty_or_it_stands_nowhere_near() {
        let written = seen("> one two three", (15, 0));
        let has_left = |now: &ScreenReply, text: &str| has_left_prompt(&prompt(), now, &written, text);
        for text in
            ["one two three", "one two three\n\n", "one two three\n──\n \n", "\n", "one two thr\u{1b}ee"]
        {
            assert!(has_left(&seen("> one two three\n> ", (2, 1)), text), "{text:?}");
            assert!(has_left(&seen("> ", (2, 0)), text), "{text:?}");
            assert!(!has_left(&written, text), "{text:?}");
            assert!(!has_left(&seen("> one two three\n", (0, 1)), text), "a new line: {text:?}");
        }
        assert!(has_left(&seen("> one two three\nworking\n", (0, 2)), "one two three"));
        assert!(!has_left(&seen("x\n> one two three", (15, 1)), "one two three"), "it was scrolled");
        assert!(!has_left(&seen("> one two three\nworking\n", (0, 2)), " \n"), "nobody can tell");
    }
}
