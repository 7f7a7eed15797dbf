//! A word to everybody who is attached to the server, shown in their status line for some seconds.
//!
//! tmux expands formats in such a message, so only letters that mean nothing to it pass.

use tmux_interface::{DisplayMessage, ListClients};

use crate::deadline::Deadline;
use crate::script::Script;
use crate::{Error, Server};

/// For this long it stands there, unless a key is pressed, ms.
const SHOWN: usize = 5_000;
/// The longest word, in bytes.
const LONGEST: usize = 200;

impl Server {
    /// Shows `text` to every client that is a person's. Nobody attached is no error.
    ///
    /// # Errors
    /// `Invalid` for a text that holds more than letters, digits, spaces and `@:_,()-`.
    pub fn announce(&mut self, text: &str) -> Result<(), Error> {
        if !is_plain(text) {
            return Err(Error::invalid(text, "an announcement is letters, digits, spaces and @:_,()-"));
        }
        let deadline = Deadline::of("announce");
        let list = ListClients::new().format("#{client_control_mode} #{client_name}").build();
        let clients = self.ask(&Script::of(&list), deadline)?.text(deadline.verb())?;
        for client in clients.lines().filter_map(|line| line.strip_prefix("0 ")) {
            let message = DisplayMessage::new().target_client(client).delay(SHOWN).message(text).build();
            // It may be gone by now.
            self.ask(&Script::of(&message), deadline)?.done(deadline.verb()).ok();
        }
        Ok(())
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " @:_,()-".contains(c);
    text.len() <= LONGEST && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain)
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
        assert!(!is_plain(&"a".repeat(201)));
    }
}
