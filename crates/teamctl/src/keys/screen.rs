//! What a screen shows: an empty prompt, a dialog, or neither. Pure.

use protocol::control::ScreenReply;
use protocol::dialog::{is_frame, shown};

/// How a program's screen is read: plain words, no patterns. Frames and spaces around them do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The line that the cursor stands in, as it is while nothing is written there.
    pub(crate) ready: Vec<String>,
    /// What stands somewhere on the screen while a dialog is open, as [`protocol::dialog`] takes it.
    pub(crate) dialog: Vec<String>,
}

/// See above.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Ready,
    /// What told that it is one.
    Dialog(String),
    Other,
}

impl Prompt {
    pub(super) fn of(&self, seen: &ScreenReply) -> Shown {
        if let Some(dialog) = shown(&seen.screen, &self.dialog) {
            return Shown::Dialog(dialog.to_owned());
        }
        let line = plain(line_of(seen));
        let ready = self.ready.iter().any(|ready| plain(ready) == line);
        if ready { Shown::Ready } else { Shown::Other }
    }
}

/// Whether what was written is not in the prompt any more: the cursor has gone elsewhere, and the words do not stand
/// before it.
pub(super) fn has_left(now: &ScreenReply, written: &ScreenReply, text: &str) -> bool {
    let tail: String = squeezed(text.lines().last().unwrap_or_default());
    let tail: String = tail.chars().skip(tail.chars().count().saturating_sub(TAIL)).collect();
    now.cursor != written.cursor && !squeezed(line_of(now)).ends_with(&tail)
}

/// Characters of a text's end that tell it from an empty prompt.
const TAIL: usize = 12;

fn line_of(seen: &ScreenReply) -> &str {
    seen.screen.lines().nth(seen.cursor.1 as usize).unwrap_or_default()
}

/// Without frames, and with one space for several.
fn plain(line: &str) -> String {
    let unframed: String = line.chars().map(|c| if is_frame(c) { ' ' } else { c }).collect();
    unframed.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn squeezed(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace() && !is_frame(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(screen: &str, cursor: (u32, u32)) -> ScreenReply {
        ScreenReply { screen: screen.to_owned(), cursor }
    }

    fn prompt() -> Prompt {
        Prompt { ready: vec![">".into(), "> Type here".into()], dialog: vec!["Do you trust".into()] }
    }

    #[test]
    fn ready_is_an_empty_prompt_under_the_cursor_and_nothing_else() {
        let of = |screen: &str, line: u32| prompt().of(&seen(screen, (2, line)));
        assert_eq!(of("done\n> ", 1), Shown::Ready);
        assert_eq!(of("╭────╮\n│ >  Type   here │\n╰────╯", 1), Shown::Ready);
        assert_eq!(of("done\n> a draft", 1), Shown::Other);
        assert_eq!(of("> \nworking", 1), Shown::Other, "the cursor is elsewhere");
        assert_eq!(of("", 7), Shown::Other);
        assert_eq!(of("Do you trust it?\n> ", 1), Shown::Dialog("Do you trust".into()));
    }

    #[test]
    fn a_text_has_left_when_the_cursor_moved_and_it_does_not_stand_before_it() {
        let written = seen("> one two three", (15, 0));
        assert!(has_left(&seen("> one two three\n> ", (2, 1)), &written, "one two three"));
        assert!(has_left(&seen("> ", (2, 0)), &written, "one two three"));
        assert!(!has_left(&written, &written, "one two three"));
        assert!(!has_left(&seen("> one two three\n\n", (0, 1)), &written, ""));
        assert!(
            !has_left(&seen("x\n> one two three", (15, 1)), &written, "one two three"),
            "it was scrolled"
        );
    }
}
