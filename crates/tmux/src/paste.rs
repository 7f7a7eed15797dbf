//! The one place where text is typed into a pane.
//!
//! Only into a pane that is ours, lives, and has its cursor where it was when somebody looked at its screen: a person
//! who has begun to type in between has moved it. Text goes by a buffer and as one bracketed paste, so that a newline
//! in it ends no line of a program that knows such pastes; whatever else would steer a terminal is taken out before.
//! tmux itself crashes, up to 3.3, where something is pasted into a pane whose process has ended: hence the guard.

use tmux_interface::{CapturePane, DisplayMessage, PasteBuffer, SetBuffer};

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::guarded_command::all_of;
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

/// A pane's screen, and where its cursor stands, columns and lines from the top left, both from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenAndCursor {
    /// A line each.
    pub screen: String,
    /// Column and line.
    pub cursor: (u32, u32),
}

/// As much as travels in one command even where each command is a process.
const CHUNK_BYTES: usize = 4 * 1024;

/// A living pane that shows its program, not its history.
const ACCEPTS_INPUT: &str = "#{&&:#{==:#{pane_dead},0},#{==:#{pane_in_mode},0}}";

impl TmuxServer {
    /// What a pane of `owner`'s shows now.
    ///
    /// # Errors
    /// `NotOurs`, also where its process has ended or a person looks into its history.
    pub fn capture_with_cursor(&mut self, pane: PaneId, owner: &PaneTag) -> Result<ScreenAndCursor, Error> {
        let deadline = Deadline::for_action("look at a pane");
        let capture = CapturePane::new().stdout().target_pane(pane.to_string()).build();
        let cursor = DisplayMessage::new().print().target_pane(pane.to_string());
        let cursor = cursor.message("#{cursor_x} #{cursor_y}").build();
        let act = CommandList::new(&cursor).with_command(&capture);
        let condition = all_of(&all_of(&self.epoch().condition(), &owner.owned_condition()), ACCEPTS_INPUT);
        let text = self.run_if(deadline, pane, &condition, &act)?;
        parse_capture(&text).ok_or_else(|| Error::unexpected_reply(deadline.action(), &text))
    }

    /// Types `text`, without the key that hands it in. After an error some of it may be there.
    ///
    /// # Errors
    /// `NotOurs`, also where the cursor is not at `cursor` any more.
    pub fn paste(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        cursor: (u32, u32),
        text: &str,
    ) -> Result<(), Error> {
        let text = strip_control_characters(text);
        for (n, chunk) in split_chunks(&text).into_iter().enumerate() {
            self.paste_if_unchanged(pane, owner, (n == 0).then_some(cursor), chunk, NewlineKind::Text)?;
        }
        Ok(())
    }

    /// Hands in what was typed: the Enter key.
    ///
    /// # Errors
    /// As [`Server::paste`].
    pub fn press_enter(&mut self, pane: PaneId, owner: &PaneTag, cursor: (u32, u32)) -> Result<(), Error> {
        self.paste_if_unchanged(pane, owner, Some(cursor), "\r", NewlineKind::EnterKey)
    }

    fn paste_if_unchanged(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        cursor: Option<(u32, u32)>,
        text: &str,
        newline: NewlineKind,
    ) -> Result<(), Error> {
        let (deadline, buffer) =
            (Deadline::for_action("type into a pane"), format!("teamd-{}", nonce::generate()));
        let mut condition =
            all_of(&all_of(&self.epoch().condition(), &owner.owned_condition()), ACCEPTS_INPUT);
        if let Some((x, y)) = cursor {
            let there = all_of(&format!("#{{==:#{{cursor_x}},{x}}}"), &format!("#{{==:#{{cursor_y}},{y}}}"));
            condition = all_of(&condition, &there);
        }
        let mut set = SetBuffer::new().buffer_name(buffer.as_str()).build();
        // A text may begin with a dash.
        set.push_param("--").push_param(text);
        let paste = PasteBuffer::new().delete().buffer_name(buffer.as_str()).target_pane(pane.to_string());
        let paste = match newline {
            NewlineKind::Text => paste.bracket_codes().no_replacement(),
            NewlineKind::EnterKey => paste.no_replacement(),
        };
        let act = CommandList::new(&set).with_command(&paste.build());
        // Twice would be typed twice.
        self.run_if_once(deadline, pane, &condition, &act).map(drop)
    }
}

/// What a newline becomes.
#[derive(Clone, Copy)]
enum NewlineKind {
    /// Part of a text.
    Text,
    /// The key.
    EnterKey,
}

fn parse_capture(text: &str) -> Option<ScreenAndCursor> {
    let (cursor, screen) = text.split_once('\n').unwrap_or((text, ""));
    let (x, y) = cursor.split_once(' ')?;
    Some(ScreenAndCursor { screen: screen.to_owned(), cursor: (x.parse().ok()?, y.parse().ok()?) })
}

/// Without what a terminal or an editor of prompts would take for a key or a command. Tabs complete things.
fn strip_control_characters(text: &str) -> String {
    let plain = text.replace("\r\n", "\n").replace(['\r', '\t'], " ");
    plain.chars().filter(|c| *c == '\n' || !c.is_control()).collect::<String>().trim_end().to_owned()
}

fn split_chunks(text: &str) -> Vec<&str> {
    let (mut rest, mut chunks) = (text, Vec::new());
    while !rest.is_empty() {
        let end = (0..=CHUNK_BYTES.min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
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
    fn control_characters_are_stripped() {
        let evil = "a\x1b[201~\r\x03\x04b\u{9b}2J\tc\x7f\r\nd\n\n";
        assert_eq!(strip_control_characters(evil), "a[201~ b2J c\nd");
    }

    #[test]
    fn long_text_is_split_without_loss() {
        let text = "ü🪜".repeat(3_000);
        let pieces = split_chunks(&text);
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.len() <= CHUNK_BYTES));
        assert_eq!(pieces.concat(), text);
        assert!(split_chunks("").is_empty());
    }

    #[test]
    fn capture_has_cursor_and_screen() {
        let look = parse_capture("3 0\n> a\n\n").unwrap();
        assert_eq!((look.cursor, look.screen.as_str()), ((3, 0), "> a\n\n"));
        assert_eq!(parse_capture("x"), None);
    }
}
