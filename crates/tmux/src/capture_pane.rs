//! What panes show.
//!
//! Only of a pane that is ours: anybody else's screen is nobody's business.

use tmux_interface::CapturePane;

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::guarded_command::{all_of, if_else, print_command};
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

/// As many as are looked at in one command, so that it stays short enough where each command is a process.
const MAX_PANES_PER_COMMAND: usize = 16;

impl TmuxServer {
    /// The screen of a pane of `owner`'s as plain text, a line each; or, with `lines`, the last so many that hold
    /// something, reaching back into its history.
    ///
    /// # Errors
    /// `NotOurs`.
    pub fn capture(&mut self, pane: PaneId, owner: &PaneTag, lines: Option<u32>) -> Result<String, Error> {
        let mut command = CapturePane::new().stdout().target_pane(pane.to_string());
        if let Some(lines) = lines {
            command = command.start_line(format!("-{lines}"));
        }
        let act = CommandList::new(&command.build());
        let screen = self.run_if_tagged(Deadline::for_action("read a pane's screen"), pane, owner, &act)?;
        Ok(match lines {
            Some(lines) => last_lines(&screen, lines).to_owned(),
            None => screen,
        })
    }

    /// The screens of several panes in this order, as plain text, a line that was wrapped by its pane in one; none for a
    /// pane that is not its owner's any more. One round trip for each sixteen of them, and two seconds for all.
    ///
    /// # Errors
    /// `Timeout` above all: a screen can wait.
    pub fn capture_panes(&mut self, panes: &[(PaneId, PaneTag)]) -> Result<Vec<Option<String>>, Error> {
        let deadline = Deadline::for_capture("look at the screens");
        let mut screens = Vec::with_capacity(panes.len());
        for some in panes.chunks(MAX_PANES_PER_COMMAND) {
            screens.extend(self.capture_chunk(some, deadline)?);
        }
        Ok(screens)
    }

    fn capture_chunk(
        &mut self,
        panes: &[(PaneId, PaneTag)],
        deadline: Deadline,
    ) -> Result<Vec<Option<String>>, Error> {
        let words = ScreenDelimiters { end: nonce::generate(), not_owned: nonce::generate() };
        let mut script = print_command(&words.end);
        for (pane, owner) in panes {
            let capture = CapturePane::new().stdout().join().target_pane(pane.to_string()).build();
            let condition = all_of(&self.epoch().condition(), &owner.owned_condition());
            let one = if_else(
                &pane.to_string(),
                &condition,
                &CommandList::new(&capture),
                &print_command(&words.not_owned),
            )?;
            script = script.extend(one).extend(print_command(&words.end));
        }
        let text = self.run(&script, deadline)?.text(deadline.action())?;
        words
            .split_screens(&text, panes.len())
            .ok_or_else(|| Error::unexpected_reply(deadline.action(), &text))
    }
}

/// What stands between screens, and in place of one; nobody else knows them.
struct ScreenDelimiters {
    end: String,
    not_owned: String,
}

impl ScreenDelimiters {
    fn split_screens(&self, text: &str, count: usize) -> Option<Vec<Option<String>>> {
        let mut ends = text.split('\n').collect::<Vec<_>>();
        let first = ends.iter().position(|line| *line == self.end)?;
        let parts = ends.split_off(first + 1);
        let last = parts.strip_suffix(&[self.end.as_str()])?;
        let screens = last.split(|line| *line == self.end).map(|lines| self.join_screen(lines));
        Some(screens.collect::<Vec<_>>()).filter(|screens| screens.len() == count)
    }

    fn join_screen(&self, lines: &[&str]) -> Option<String> {
        (lines != [self.not_owned.as_str()]).then(|| lines.join("\n"))
    }
}

/// The end of a text, without the empty rest of the screen.
fn last_lines(text: &str, lines: u32) -> &str {
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
    fn screens_are_split_by_delimiters() {
        let words = ScreenDelimiters { end: "E".to_owned(), not_owned: "R".to_owned() };
        let seen = words.split_screens("E\na\n\nb\nE\nR\nE\n\nE", 3).unwrap();
        assert_eq!(seen, [Some("a\n\nb".to_owned()), None, Some(String::new())]);
        for text in ["", "E", "E\na", "E\na\nE\nb", "a\nE\nb"] {
            assert_eq!(words.split_screens(text, 2), None, "{text}");
        }
    }

    #[test]
    fn last_lines_skip_trailing_blanks() {
        assert_eq!(last_lines("a\n\nb\nc \n\n\n", 2), "b\nc");
        assert_eq!(last_lines("a\n\nb\nc", 3), "\nb\nc");
        assert_eq!(last_lines("a\nb", 9), "a\nb");
        assert_eq!(last_lines("a\nb", 0), "");
    }
}
