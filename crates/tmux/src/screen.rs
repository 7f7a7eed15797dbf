//! What a pane shows.
//!
//! Only of a pane that is ours: anybody else's screen is nobody's business.

use tmux_interface::CapturePane;

use crate::deadline::Deadline;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server};

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
    fn the_last_lines_do_not_count_the_empty_rest() {
        assert_eq!(last("a\n\nb\nc \n\n\n", 2), "b\nc");
        assert_eq!(last("a\n\nb\nc", 3), "\nb\nc");
        assert_eq!(last("a\nb", 9), "a\nb");
        assert_eq!(last("a\nb", 0), "");
    }
}
