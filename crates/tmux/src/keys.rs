//! The one place where text is typed into a pane.
//!
//! Only into a pane that is ours, lives, and has its cursor where it was when somebody looked at its screen: a person
//! who has begun to type in between has moved it. Text goes by a buffer and as one bracketed paste, so that a newline
//! in it ends no line of a program that knows such pastes; whatever else would steer a terminal is taken out before.
//! tmux itself crashes, up to 3.3, where something is pasted into a pane whose process has ended: hence the guard.

use tmux_interface::{CapturePane, DisplayMessage, PasteBuffer, SetBuffer};

use crate::deadline::Deadline;
use crate::guard::both;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server, nonce};

/// A pane's screen, and where its cursor stands, columns and lines from the top left, both from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// A line each.
    pub screen: String,
    /// Column and line.
    pub cursor: (u32, u32),
}

/// As much as travels in one command even where each command is a process.
const CHUNK: usize = 4 * 1024;

/// A living pane that shows its program, not its history.
const LISTENS: &str = "#{&&:#{==:#{pane_dead},0},#{==:#{pane_in_mode},0}}";

impl Server {
    /// What a pane of `owner`'s shows now.
    ///
    /// # Errors
    /// `NotOurs`, also where its process has ended or a person looks into its history.
    pub fn look(&mut self, pane: PaneId, owner: &Owner) -> Result<Seen, Error> {
        let deadline = Deadline::of("look at a pane");
        let capture = CapturePane::new().stdout().target_pane(pane.to_string()).build();
        let cursor = DisplayMessage::new().print().target_pane(pane.to_string());
        let cursor = cursor.message("#{cursor_x} #{cursor_y}").build();
        let act = Script::of(&cursor).then(&capture);
        let condition = both(&both(&self.epoch().condition(), &owner.condition()), LISTENS);
        let text = self.conditional(deadline, pane, &condition, &act)?;
        seen(&text).ok_or_else(|| Error::unexpected(deadline.verb(), &text))
    }

    /// Types `text`, without the key that hands it in. After an error some of it may be there.
    ///
    /// # Errors
    /// `NotOurs`, also where the cursor is not at `cursor` any more.
    pub fn paste(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        cursor: (u32, u32),
        text: &str,
    ) -> Result<(), Error> {
        let text = harmless(text);
        for (n, chunk) in chunks(&text).into_iter().enumerate() {
            self.put(pane, owner, (n == 0).then_some(cursor), chunk, Newline::Kept)?;
        }
        Ok(())
    }

    /// Hands in what was typed: the Enter key.
    ///
    /// # Errors
    /// As [`Server::paste`].
    pub fn enter(&mut self, pane: PaneId, owner: &Owner, cursor: (u32, u32)) -> Result<(), Error> {
        self.put(pane, owner, Some(cursor), "\r", Newline::Key)
    }

    fn put(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        cursor: Option<(u32, u32)>,
        text: &str,
        newline: Newline,
    ) -> Result<(), Error> {
        let (deadline, buffer) = (Deadline::of("type into a pane"), format!("teamd-{}", nonce::fresh()));
        let mut condition = both(&both(&self.epoch().condition(), &owner.condition()), LISTENS);
        if let Some((x, y)) = cursor {
            let there = both(&format!("#{{==:#{{cursor_x}},{x}}}"), &format!("#{{==:#{{cursor_y}},{y}}}"));
            condition = both(&condition, &there);
        }
        let mut set = SetBuffer::new().buffer_name(buffer.as_str()).build();
        // A text may begin with a dash.
        set.push_param("--").push_param(text);
        let paste = PasteBuffer::new().delete().buffer_name(buffer.as_str()).target_pane(pane.to_string());
        let paste = match newline {
            Newline::Kept => paste.bracket_codes().no_replacement(),
            Newline::Key => paste.no_replacement(),
        };
        let act = Script::of(&set).then(&paste.build());
        // Twice would be typed twice.
        self.conditional_once(deadline, pane, &condition, &act).map(drop)
    }
}

/// What a newline becomes.
#[derive(Clone, Copy)]
enum Newline {
    /// Part of a text.
    Kept,
    /// The key.
    Key,
}

fn seen(text: &str) -> Option<Seen> {
    let (cursor, screen) = text.split_once('\n').unwrap_or((text, ""));
    let (x, y) = cursor.split_once(' ')?;
    Some(Seen { screen: screen.to_owned(), cursor: (x.parse().ok()?, y.parse().ok()?) })
}

/// Without what a terminal or an editor of prompts would take for a key or a command. Tabs complete things.
fn harmless(text: &str) -> String {
    let plain = text.replace("\r\n", "\n").replace(['\r', '\t'], " ");
    plain.chars().filter(|c| *c == '\n' || !c.is_control()).collect::<String>().trim_end().to_owned()
}

fn chunks(text: &str) -> Vec<&str> {
    let (mut rest, mut chunks) = (text, Vec::new());
    while !rest.is_empty() {
        let end = (0..=CHUNK.min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
        let (chunk, more) = rest.split_at(end);
        chunks.push(chunk);
        rest = more;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_paste_or_presses_a_key() {
        let evil = "a\x1b[201~\r\x03\x04b\u{9b}2J\tc\x7f\r\nd\n\n";
        assert_eq!(harmless(evil), "a[201~ b2J c\nd");
    }

    #[test]
    fn a_long_text_goes_in_pieces_and_none_is_lost() {
        let text = "ü🪜".repeat(3_000);
        let pieces = chunks(&text);
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.len() <= CHUNK));
        assert_eq!(pieces.concat(), text);
        assert!(chunks("").is_empty());
    }

    #[test]
    fn a_look_is_a_cursor_and_a_screen() {
        let look = seen("3 0\n> a\n\n").unwrap();
        assert_eq!((look.cursor, look.screen.as_str()), ((3, 0), "> a\n\n"));
        assert_eq!(seen("x"), None);
    }
}
