//! Shows a message in the status line of all attached clients for some seconds.
//!
//! tmux expands formats in the message, so only characters without a special meaning in tmux are
//! allowed.

use tmux_interface::{DisplayMessage, ListClients};

use crate::command_list::CommandList;
use crate::{Error, InvalidArgument, PaneId, TmuxServer};

/// How long the message is shown, in milliseconds. A key press ends it.
const DISPLAY_MS: usize = 5_000;
/// Length limit of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 300;
/// The format of a client: control mode, active pane, whether its terminal has the focus, name.
const CLIENT_FORMAT: &str = "#{client_control_mode} #{pane_id} #{m:*focused*,#{client_flags}} #{client_name}";

impl TmuxServer {
    /// Shows the message `text` in every attached terminal, but not in a terminal that has the
    /// focus and shows one of `panes`. If no terminal is attached, nothing is shown and this is not
    /// an error.
    ///
    /// Returns whether every pane of `panes` is shown in a terminal that has the focus. Returns
    /// false if `panes` is empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if [`is_valid_message`] returns false for `text`.
    pub fn show_message(&mut self, text: &str, panes: &[PaneId]) -> Result<bool, Error> {
        if !is_valid_message(text) {
            return Err(InvalidArgument::new(text, "a message is letters, digits, spaces and @:_,()-").into());
        }
        let mut call = self.call("show a message");
        let list = ListClients::new().format(CLIENT_FORMAT).build();
        let clients = call.run(&CommandList::new(&list))?.text()?;
        let clients: Vec<AttachedClient<'_>> = clients.lines().filter_map(parse_client).collect();
        for client in clients.iter().filter(|client| !client.shows_any(panes)) {
            let message =
                DisplayMessage::new().target_client(client.name).delay(DISPLAY_MS).message(text).build();
            // The client may have detached since it was listed.
            call.run(&CommandList::new(&message))?.into_result().ok();
        }
        let is_seen = |pane: &PaneId| clients.iter().any(|client| client.shows_any(&[*pane]));
        Ok(!panes.is_empty() && panes.iter().all(is_seen))
    }
}

/// An attached client that is not a control client.
struct AttachedClient<'l> {
    /// The active pane. `None` if its id does not parse.
    pane: Option<PaneId>,
    /// Whether the client's terminal has the focus. If the tmux option `focus-events` is off, this
    /// is always true, because tmux does not learn that the focus has changed.
    is_focused: bool,
    name: &'l str,
}

impl AttachedClient<'_> {
    /// Whether the client shows one of `panes` in a focused terminal.
    fn shows_any(&self, panes: &[PaneId]) -> bool {
        self.is_focused && self.pane.is_some_and(|pane| panes.contains(&pane))
    }
}

/// Parses a line in [`CLIENT_FORMAT`]. `None` for a control client.
fn parse_client(line: &str) -> Option<AttachedClient<'_>> {
    let (pane, rest) = line.strip_prefix("0 ")?.split_once(' ')?;
    let (focused, name) = rest.split_once(' ')?;
    Some(AttachedClient { pane: pane.parse().ok(), is_focused: focused == "1", name })
}

/// Whether tmux shows `text` unchanged and does not take it for an option. A valid text has at most
/// [`MAX_MESSAGE_BYTES`] bytes, and begins with an ASCII letter or digit. It has only ASCII
/// letters, digits, spaces and `@:_,()-`.
pub fn is_valid_message(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " @:_,()-".contains(c);
    text.len() <= MAX_MESSAGE_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_format_characters_are_rejected() {
        assert!(is_valid_message("ann@survey asks for permission: teamctl requests -t survey"));
        for text in ["#(touch x)", "a#{pid}", "%H", "a;b", "a\nb", "-p", "", "$HOME", "日本", "a'b"] {
            assert!(!is_valid_message(text), "{text:?}");
        }
        assert!(!is_valid_message(&"a".repeat(301)));
    }
}
