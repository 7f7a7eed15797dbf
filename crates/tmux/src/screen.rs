//! What panes show.
//!
//! Only of a pane that is ours: anybody else's screen is nobody's business.

use tmux_interface::CapturePane;

use crate::deadline::Deadline;
use crate::guard::{both, either, say};
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server, nonce};

/// As many as are looked at in one command, so that it stays short enough where each command is a process.
const TOGETHER: usize = 16;

impl Server {
    /// The screen of a pane of `owner`'s as plain text, a line each; or, with `lines`, the last so many that hold
    /// something, reaching back into its history.
    ///
    /// # Errors
    /// `NotOurs`.
    pub fn capture(&mut self, pane: PaneId, owner: &Owner, lines: Option<u32>) -> Result<String, Error> {
        let mut command = CapturePane::new().stdout().target_pane(pane.to_string());
        if let Some(lines) = lines {
            command = command.start_line(format!("-{lines}"));
        }
        let act = Script::of(&command.build());
        let screen = self.guarded(Deadline::of("read a pane's screen"), pane, owner, &act)?;
        Ok(match lines {
            Some(lines) => last(&screen, lines).to_owned(),
            None => screen,
        })
    }

    /// The screens of several panes in this order, as plain text, a line that was wrapped by its pane in one; none for a
    /// pane that is not its owner's any more. One round trip for each sixteen of them, and two seconds for all.
    ///
    /// # Errors
    /// `Timeout` above all: a screen can wait.
    pub fn screens(&mut self, panes: &[(PaneId, Owner)]) -> Result<Vec<Option<String>>, Error> {
        let deadline = Deadline::of_a_look("look at the screens");
        let mut screens = Vec::with_capacity(panes.len());
        for some in panes.chunks(TOGETHER) {
            screens.extend(self.screens_of(some, deadline)?);
        }
        Ok(screens)
    }

    fn screens_of(
        &mut self,
        panes: &[(PaneId, Owner)],
        deadline: Deadline,
    ) -> Result<Vec<Option<String>>, Error> {
        let words = Words { end: nonce::fresh(), refusal: nonce::fresh() };
        let mut script = say(&words.end);
        for (pane, owner) in panes {
            let capture = CapturePane::new().stdout().join().target_pane(pane.to_string()).build();
            let condition = both(&self.epoch().condition(), &owner.condition());
            let one = either(&pane.to_string(), &condition, &Script::of(&capture), &say(&words.refusal))?;
            script = script.and(one).and(say(&words.end));
        }
        let text = self.ask(&script, deadline)?.text(deadline.verb())?;
        words.screens(&text, panes.len()).ok_or_else(|| Error::unexpected(deadline.verb(), &text))
    }
}

/// What stands between screens, and in place of one; nobody else knows them.
struct Words {
    end: String,
    refusal: String,
}

impl Words {
    fn screens(&self, text: &str, count: usize) -> Option<Vec<Option<String>>> {
        let mut ends = text.split('\n').collect::<Vec<_>>();
        let first = ends.iter().position(|line| *line == self.end)?;
        let parts = ends.split_off(first + 1);
        let last = parts.strip_suffix(&[self.end.as_str()])?;
        let screens = last.split(|line| *line == self.end).map(|lines| self.screen(lines));
        Some(screens.collect::<Vec<_>>()).filter(|screens| screens.len() == count)
    }

    fn screen(&self, lines: &[&str]) -> Option<String> {
        (lines != [self.refusal.as_str()]).then(|| lines.join("\n"))
    }
}

/// The end of a text, without the empty rest of the screen.
fn last(text: &str, lines: u32) -> &str {
    let text = text.trim_end_matches([' ', '\n']);
    let count = usize::try_from(lines).unwrap_or(usize::MAX);
    let Some(before) = count.checked_sub(1) else { return "" };
    match text.rmatch_indices('\n').nth(before) {
        Some((at, _)) => &text[at + 1..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_are_told_apart_whatever_they_hold() {
        let words = Words { end: "E".to_owned(), refusal: "R".to_owned() };
        let seen = words.screens("E\na\n\nb\nE\nR\nE\n\nE", 3).unwrap();
        assert_eq!(seen, [Some("a\n\nb".to_owned()), None, Some(String::new())]);
        for text in ["", "E", "E\na", "E\na\nE\nb", "a\nE\nb"] {
            assert_eq!(words.screens(text, 2), None, "{text}");
        }
    }

    #[test]
    fn the_last_lines_do_not_count_the_empty_rest() {
        assert_eq!(last("a\n\nb\nc \n\n\n", 2), "b\nc");
        assert_eq!(last("a\n\nb\nc", 3), "\nb\nc");
        assert_eq!(last("a\nb", 9), "a\nb");
        assert_eq!(last("a\nb", 0), "");
    }
}
