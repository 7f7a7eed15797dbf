//! A word to everybody who is attached to the server, shown in their status line for some seconds.
//!
//! tmux expands formats in such a message, so only letters that mean nothing to it pass.

use tmux_interface::{DisplayMessage, ListClients};

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::{Error, PaneId, TmuxServer};

/// For this long it stands there, unless a key is pressed, ms.
const DISPLAY_MS: usize = 5_000;
/// The longest word, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 300;
/// A client, the pane that it shows, and whether its terminal is the one that is looked at.
const CLIENT_FORMAT: &str = "#{client_control_mode} #{pane_id} #{m:*focused*,#{client_flags}} #{client_name}";

impl TmuxServer {
    /// Shows `text` to every client that is a person's, but for those that look at one of `panes` just now. True where
    /// somebody looks at each of these. Nobody attached is no error.
    ///
    /// # Errors
    /// `Invalid` for a text that holds more than letters, digits, spaces and `@:_,()-`.
    pub fn show_message(&mut self, text: &str, panes: &[PaneId]) -> Result<bool, Error> {
        if !is_safe_text(text) {
            return Err(Error::invalid_argument(
                text,
                "an announcement is letters, digits, spaces and @:_,()-",
            ));
        }
        let deadline = Deadline::for_action("announce");
        let list = ListClients::new().format(CLIENT_FORMAT).build();
        let clients = self.run(&CommandList::new(&list), deadline)?.text(deadline.action())?;
        let clients: Vec<AttachedClient<'_>> = clients.lines().filter_map(parse_client).collect();
        for client in clients.iter().filter(|client| !client.shows_any(panes)) {
            let message =
                DisplayMessage::new().target_client(client.name).delay(DISPLAY_MS).message(text).build();
            // It may be gone by now.
            self.run(&CommandList::new(&message), deadline)?.into_result(deadline.action()).ok();
        }
        let is_seen = |pane: &PaneId| clients.iter().any(|client| client.shows_any(&[*pane]));
        Ok(!panes.is_empty() && panes.iter().all(is_seen))
    }
}

/// A person's.
struct AttachedClient<'l> {
    pane: Option<PaneId>,
    /// As long as its terminal has not said otherwise, which it does with `focus-events` alone.
    is_focused: bool,
    name: &'l str,
}

impl AttachedClient<'_> {
    fn shows_any(&self, panes: &[PaneId]) -> bool {
        self.is_focused && self.pane.is_some_and(|pane| panes.contains(&pane))
    }
}

fn parse_client(line: &str) -> Option<AttachedClient<'_>> {
    let (pane, rest) = line.strip_prefix("0 ")?.split_once(' ')?;
    let (focused, name) = rest.split_once(' ')?;
    Some(AttachedClient { pane: pane.parse().ok(), is_focused: focused == "1", name })
}

fn is_safe_text(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " @:_,()-".contains(c);
    text.len() <= MAX_MESSAGE_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_format_characters_are_rejected() {
        assert!(is_safe_text("ann@survey asks for permission: teamctl requests -t survey"));
        for text in ["#(touch x)", "a#{pid}", "%H", "a;b", "a\nb", "-p", "", "$HOME", "日本", "a'b"] {
            assert!(!is_safe_text(text), "{text:?}");
        }
        assert!(!is_safe_text(&"a".repeat(301)));
    }
}
