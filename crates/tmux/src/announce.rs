//! A word to everybody who is attached to the server, shown in their status line for some seconds.
//!
//! tmux expands formats in such a message, so only letters that mean nothing to it pass.

use tmux_interface::{DisplayMessage, ListClients};

use crate::deadline::Deadline;
use crate::script::Script;
use crate::{Error, PaneId, Server};

/// For this long it stands there, unless a key is pressed, ms.
const SHOWN: usize = 5_000;
/// The longest word, in bytes.
pub const LONGEST_WORD: usize = 300;
/// A client, the pane that it shows, and whether its terminal is the one that is looked at.
const CLIENT: &str = "#{client_control_mode} #{pane_id} #{m:*focused*,#{client_flags}} #{client_name}";

impl Server {
    /// Shows `text` to every client that is a person's, but for those that look at one of `panes` just now. True where
    /// somebody looks at each of these. Nobody attached is no error.
    ///
    /// # Errors
    /// `Invalid` for a text that holds more than letters, digits, spaces and `@:_,()-`.
    pub fn announce(&mut self, text: &str, panes: &[PaneId]) -> Result<bool, Error> {
        if !is_plain(text) {
            return Err(Error::invalid(text, "an announcement is letters, digits, spaces and @:_,()-"));
        }
        let deadline = Deadline::of("announce");
        let list = ListClients::new().format(CLIENT).build();
        let clients = self.ask(&Script::of(&list), deadline)?.text(deadline.verb())?;
        let clients: Vec<Client<'_>> = clients.lines().filter_map(client).collect();
        for client in clients.iter().filter(|client| !client.looks_at_one_of(panes)) {
            let message = DisplayMessage::new().target_client(client.name).delay(SHOWN).message(text).build();
            // It may be gone by now.
            self.ask(&Script::of(&message), deadline)?.done(deadline.verb()).ok();
        }
        let is_seen = |pane: &PaneId| clients.iter().any(|client| client.looks_at_one_of(&[*pane]));
        Ok(!panes.is_empty() && panes.iter().all(is_seen))
    }
}

/// A person's.
struct Client<'l> {
    pane: Option<PaneId>,
    /// As long as its terminal has not said otherwise, which it does with `focus-events` alone.
    is_focused: bool,
    name: &'l str,
}

impl Client<'_> {
    fn looks_at_one_of(&self, panes: &[PaneId]) -> bool {
        self.is_focused && self.pane.is_some_and(|pane| panes.contains(&pane))
    }
}

fn client(line: &str) -> Option<Client<'_>> {
    let (pane, rest) = line.strip_prefix("0 ")?.split_once(' ')?;
    let (focused, name) = rest.split_once(' ')?;
    Some(Client { pane: pane.parse().ok(), is_focused: focused == "1", name })
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " @:_,()-".contains(c);
    text.len() <= LONGEST_WORD
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_tmux_expands_passes() {
        assert!(is_plain("ann@survey asks for permission: teamctl requests -t survey"));
        for text in ["#(touch x)", "a#{pid}", "%H", "a;b", "a\nb", "-p", "", "$HOME", "日本", "a'b"] {
            assert!(!is_plain(text), "{text:?}");
        }
        assert!(!is_plain(&"a".repeat(301)));
    }
}
