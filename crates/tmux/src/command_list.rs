//! Commands for tmux, before anybody decides how they travel.
//!
//! The builders of `tmux_interface` make the words; it neither quotes nor knows argument vectors, so here they become
//! one line of tmux's language, or arguments of a process. A script has a command at least, so its line is never
//! empty and never a comment: tmux would not answer those.

use tmux_interface::TmuxCommand;

use crate::Error;
use crate::quote::quote;

/// Commands that tmux runs one after the other, up to the first that fails.
#[derive(Debug, Clone)]
pub(crate) struct CommandList(Vec<Vec<String>>);

impl CommandList {
    pub(crate) fn new(command: &TmuxCommand<'_>) -> CommandList {
        CommandList(vec![command_words(command)])
    }

    pub(crate) fn with_command(mut self, command: &TmuxCommand<'_>) -> CommandList {
        self.0.push(command_words(command));
        self
    }

    pub(crate) fn extend(mut self, script: CommandList) -> CommandList {
        self.0.extend(script.0);
        self
    }

    /// As one line of tmux's language, without its end.
    ///
    /// # Errors
    /// `Invalid` if a word cannot be spelled.
    pub(crate) fn to_command_line(&self) -> Result<String, Error> {
        let commands: Result<Vec<String>, Error> = self.0.iter().map(|words| quote_words(words)).collect();
        Ok(commands?.join(" ; "))
    }

    /// As arguments of the tmux program. It takes an argument's last `;` for the end of a command, unless a
    /// backslash stands before it.
    ///
    /// # Errors
    /// `Invalid` if a word cannot be spelled.
    pub(crate) fn to_args(&self) -> Result<Vec<String>, Error> {
        self.to_command_line()?;
        let mut arguments = Vec::new();
        for (index, words) in self.0.iter().enumerate() {
            arguments.extend((index > 0).then(|| ";".to_owned()));
            arguments.extend(words.iter().map(|word| escape_semicolon(word)));
        }
        Ok(arguments)
    }
}

fn command_words(command: &TmuxCommand<'_>) -> Vec<String> {
    command.to_vec().into_iter().map(std::borrow::Cow::into_owned).collect()
}

fn quote_words(words: &[String]) -> Result<String, Error> {
    let words: Result<Vec<String>, Error> = words.iter().map(|word| quote(word)).collect();
    Ok(words?.join(" "))
}

fn escape_semicolon(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmux_interface::{DisplayMessage, KillPane};

    fn script(message: &str) -> CommandList {
        let message = DisplayMessage::new().print().message(message).build();
        CommandList::new(&message).with_command(&KillPane::new().target_pane("%1").build())
    }

    #[test]
    fn a_line_separates_commands_and_quotes_words() {
        let line = script("a;\nkill-server").to_command_line().unwrap();
        assert_eq!(line, r#""display-message" "-p" "a;\012kill-server" ; "kill-pane" "-t" "%1""#);
    }

    #[test]
    fn trailing_semicolon_is_escaped() {
        let words = script(r"a\;").to_args().unwrap();
        assert_eq!(words, ["display-message", "-p", r"a\\;", ";", "kill-pane", "-t", "%1"]);
    }

    #[test]
    fn nul_is_rejected() {
        assert!(script("\0").to_command_line().is_err());
        assert!(script("\0").to_args().is_err());
    }
}
