//! Types text into panes. No other module does.
//!
//! Text is typed only into a tagged pane whose process runs, and whose cursor is where it was when
//! the caller captured the screen. If a person has begun to type since then, the cursor has moved.
//!
//! Text is pasted from a tmux buffer as a bracketed paste. So a program that supports such pastes
//! does not take a newline in the text for Enter. Other control characters are removed before.
//!
//! tmux crashes, up to 3.3, if something is pasted into a pane whose process has exited. The
//! condition on the pane prevents that.

use tmux_interface::{CapturePane, DisplayMessage, PasteBuffer, SetBuffer};

use crate::call::OnDisconnect;
use crate::command_list::CommandList;
use crate::condition::all_of;
use crate::{Error, PaneId, PaneTag, TmuxServer, nonce};

/// The screen of a pane and the position of its cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenAndCursor {
    /// Plain text, one line per line of the screen.
    pub screen: String,
    /// Column and line, counted from 0 at the top left.
    pub cursor: (u32, u32),
}

/// Size of the parts that a text is pasted in. Each fits into one command even if there is no
/// control connection.
const CHUNK_BYTES: usize = 4 * 1024;

/// Condition: the pane's process runs, and the pane is not in a mode that shows its history.
const ACCEPTS_INPUT: &str = "#{&&:#{==:#{pane_dead},0},#{==:#{pane_in_mode},0}}";

impl TmuxServer {
    /// Returns the screen and the cursor of a pane.
    ///
    /// # Errors
    ///
    /// `NotOwned`, also if the process of the pane has exited or the pane shows its history.
    pub fn capture_with_cursor(&mut self, pane: PaneId, tag: &PaneTag) -> Result<ScreenAndCursor, Error> {
        let mut call = self.call("capture a pane");
        let capture = CapturePane::new().stdout().target_pane(pane.to_string()).build();
        let cursor = DisplayMessage::new().print().target_pane(pane.to_string());
        let cursor = cursor.message("#{cursor_x} #{cursor_y}").build();
        let commands = CommandList::new(&cursor).with_command(&capture);
        let condition = all_of(&call.tag_condition(tag), ACCEPTS_INPUT);
        let text = call.run_if(pane, &condition, &commands, OnDisconnect::Retry)?;
        parse_capture(&text).ok_or_else(|| Error::unexpected_reply(call.action(), &text))
    }

    /// Types `text` without pressing Enter. After an error, a part of the text may have been typed.
    ///
    /// # Errors
    ///
    /// `NotOwned`, also for the reasons of [`TmuxServer::capture_with_cursor`], and if the cursor
    /// is no longer at `cursor`.
    pub fn paste(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        cursor: (u32, u32),
        text: &str,
    ) -> Result<(), Error> {
        let text = strip_control_characters(text);
        for (index, chunk) in split_chunks(&text).into_iter().enumerate() {
            self.paste_if_unchanged(pane, tag, (index == 0).then_some(cursor), chunk, NewlineKind::Text)?;
        }
        Ok(())
    }

    /// Presses Enter.
    ///
    /// # Errors
    ///
    /// As [`TmuxServer::paste`].
    pub fn press_enter(&mut self, pane: PaneId, tag: &PaneTag, cursor: (u32, u32)) -> Result<(), Error> {
        self.paste_if_unchanged(pane, tag, Some(cursor), "\r", NewlineKind::EnterKey)
    }

    /// Pastes `text` if the pane accepts input and its cursor is at `cursor`. With `None` the
    /// cursor may be anywhere.
    fn paste_if_unchanged(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        cursor: Option<(u32, u32)>,
        text: &str,
        newline: NewlineKind,
    ) -> Result<(), Error> {
        let buffer = format!("teamd-{}", nonce::generate());
        let mut call = self.call("type into a pane");
        let mut condition = all_of(&call.tag_condition(tag), ACCEPTS_INPUT);
        if let Some((x, y)) = cursor {
            let cursor_unchanged =
                all_of(&format!("#{{==:#{{cursor_x}},{x}}}"), &format!("#{{==:#{{cursor_y}},{y}}}"));
            condition = all_of(&condition, &cursor_unchanged);
        }
        let mut set = SetBuffer::new().buffer_name(buffer.as_str()).build();
        // `--`, because the text may begin with a dash.
        set.push_param("--").push_param(text);
        let paste = PasteBuffer::new().delete().buffer_name(buffer.as_str()).target_pane(pane.to_string());
        let paste = match newline {
            NewlineKind::Text => paste.bracket_codes().no_replacement(),
            NewlineKind::EnterKey => paste.no_replacement(),
        };
        let commands = CommandList::new(&set).with_command(&paste.build());
        // A retry could type the text twice.
        call.run_if(pane, &condition, &commands, OnDisconnect::Fail).map(drop)
    }
}

/// How the text is pasted.
#[derive(Clone, Copy)]
enum NewlineKind {
    /// As a bracketed paste. Newlines are part of the text.
    Text,
    /// As single key presses. The text is the Enter key.
    EnterKey,
}

/// Parses the cursor in the first line and the screen in the others.
fn parse_capture(text: &str) -> Option<ScreenAndCursor> {
    let (cursor, screen) = text.split_once('\n').unwrap_or((text, ""));
    let (x, y) = cursor.split_once(' ')?;
    Some(ScreenAndCursor { screen: screen.to_owned(), cursor: (x.parse().ok()?, y.parse().ok()?) })
}

/// Removes the characters that a terminal or a prompt editor takes for a key or a command.
///
/// Newlines stay. Tabs become spaces, because a tab starts a completion. Blank characters at the
/// end are removed.
fn strip_control_characters(text: &str) -> String {
    let plain = text.replace("\r\n", "\n").replace(['\r', '\t'], " ");
    plain.chars().filter(|c| *c == '\n' || !c.is_control()).collect::<String>().trim_end().to_owned()
}

/// Splits `text` into parts of up to [`CHUNK_BYTES`] bytes, at character boundaries.
fn split_chunks(text: &str) -> Vec<&str> {
    let (mut rest, mut chunks) = (text, Vec::new());
    while !rest.is_empty() {
        let end =
            (0..=CHUNK_BYTES.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
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
        let text = "a\x1b[201~\r\x03\x04b\u{9b}2J\tc\x7f\r\nd\n\n";
        assert_eq!(strip_control_characters(text), "a[201~ b2J c\nd");
    }

    #[test]
    fn long_text_is_split_without_loss() {
        let text = "ü🪜".repeat(3_000);
        let chunks = split_chunks(&text);
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES));
        assert_eq!(chunks.concat(), text);
        assert!(split_chunks("").is_empty());
    }

    #[test]
    fn capture_has_cursor_and_screen() {
        let capture = parse_capture("3 0\n> a\n\n").unwrap();
        assert_eq!((capture.cursor, capture.screen.as_str()), ((3, 0), "> a\n\n"));
        assert_eq!(parse_capture("x"), None);
    }
}
