//! Captures the screens of tagged panes. The tag of a pane says which agent the pane belongs to.
//!
//! Invariant: the screen of a pane is read only if the pane has the tag that the caller expects.
//! `pane_with_another_tag_stays_unchanged` checks this.

use tmux_interface::CapturePane;

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::if_shell::{if_else, print_command};
use crate::run_commands_of_one_call::TmuxCall;
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

/// How many panes one command list captures. A list may have to be passed as arguments of a tmux
/// process, and tmux accepts at most 16 KB of arguments.
const MAX_PANES_PER_COMMAND: usize = 16;

/// A pane and the tag that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedPane {
    /// The pane.
    pub pane: PaneId,
    /// The tag that the pane must have.
    pub tag: PaneTag,
}

impl TmuxServer {
    /// Returns the screen of a pane as plain text, without colors.
    ///
    /// If `lines` is given, returns that many lines from the end of the pane's history and screen
    /// instead. Blank lines at the end do not count.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag `tag`.
    pub fn capture(&mut self, pane: PaneId, tag: &PaneTag, lines: Option<u32>) -> Result<String, Error> {
        let mut command = CapturePane::new().stdout().target_pane(pane.to_string());
        if let Some(lines) = lines {
            command = command.start_line(format!("-{lines}"));
        }
        let commands = CommandList::new(&command.build());
        let screen = self.call("capture a pane").run_if_tagged(pane, tag, &commands)?;
        Ok(match lines {
            Some(lines) => last_lines(&screen, lines).to_owned(),
            None => screen,
        })
    }

    /// Returns the screens of several panes as plain text, in the order of `panes`. Lines that tmux
    /// has wrapped are joined. An element is `None` if the pane does not have the given tag.
    ///
    /// One round trip captures up to 16 panes. The time limit for all round trips together is two
    /// seconds.
    ///
    /// # Errors
    ///
    /// Usually `Timeout`, because the time limit is short. If the server cannot be reached:
    /// `Connect`, `OtherServer`, `ProgramNotStarted` or `Disconnected`.
    pub fn capture_panes(&mut self, panes: &[TaggedPane]) -> Result<Vec<Option<String>>, Error> {
        let mut call = self.call_until(Deadline::for_capture("capture the screens"));
        let mut screens = Vec::with_capacity(panes.len());
        for chunk in panes.chunks(MAX_PANES_PER_COMMAND) {
            screens.extend(call.capture_chunk(chunk)?);
        }
        Ok(screens)
    }
}

impl TmuxCall<'_> {
    /// Captures up to [`MAX_PANES_PER_COMMAND`] panes in one round trip.
    fn capture_chunk(&mut self, panes: &[TaggedPane]) -> Result<Vec<Option<String>>, Error> {
        let delimiters = ScreenDelimiters { end: nonce::generate(), not_owned: nonce::generate() };
        let mut commands = print_command(&delimiters.end);
        for TaggedPane { pane, tag } in panes {
            let capture = CapturePane::new().stdout().join().target_pane(pane.to_string()).build();
            let guarded = if_else(
                &pane.to_string(),
                &self.tag_condition(tag),
                &CommandList::new(&capture),
                &print_command(&delimiters.not_owned),
            )?;
            commands = commands.extend(guarded).extend(print_command(&delimiters.end));
        }
        self.run(&commands)?.parse(|text| delimiters.split_screens(text, panes.len()))
    }
}

/// Random words (nonces) by which this module splits tmux's reply into screens. tmux prints one of
/// them between two screens, and the other in place of the screen of a pane without the expected
/// tag.
struct ScreenDelimiters {
    /// Printed before the first screen and after each one.
    end: String,
    /// Printed in place of the screen of a pane without the expected tag.
    not_owned: String,
}

impl ScreenDelimiters {
    /// Splits the reply into screens. `None` if there are not exactly `count` of them.
    fn split_screens(&self, text: &str, count: usize) -> Option<Vec<Option<String>>> {
        let mut before = text.split('\n').collect::<Vec<_>>();
        let first = before.iter().position(|line| *line == self.end)?;
        let parts = before.split_off(first + 1);
        let last = parts.strip_suffix(&[self.end.as_str()])?;
        let screens = last.split(|line| *line == self.end).map(|lines| self.join_screen(lines));
        Some(screens.collect::<Vec<_>>()).filter(|screens| screens.len() == count)
    }

    /// Joins the lines of a screen. `None` if they are the `not_owned` nonce.
    fn join_screen(&self, lines: &[&str]) -> Option<String> {
        (lines != [self.not_owned.as_str()]).then(|| lines.join("\n"))
    }
}

/// Returns the last `lines` lines of `text`, not counting blank lines and spaces at its end.
fn last_lines(text: &str, lines: u32) -> &str {
    let text = text.trim_end_matches([' ', '\n']);
    let count = usize::try_from(lines).unwrap_or(usize::MAX);
    let Some(newlines) = count.checked_sub(1) else { return "" };
    match text.rmatch_indices('\n').nth(newlines) {
        Some((index, _)) => &text[index + 1..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_are_split_by_delimiters() {
        let delimiters = ScreenDelimiters { end: "E".to_owned(), not_owned: "R".to_owned() };
        let screens = delimiters.split_screens("E\na\n\nb\nE\nR\nE\n\nE", 3).unwrap();
        assert_eq!(screens, [Some("a\n\nb".to_owned()), None, Some(String::new())]);
        for text in ["", "E", "E\na", "E\na\nE\nb", "a\nE\nb"] {
            assert_eq!(delimiters.split_screens(text, 2), None, "{text}");
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
