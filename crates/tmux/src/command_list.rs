//! Lists of tmux commands. A list can be sent as one line over a control connection, or as
//! arguments of a tmux process. The commands come from the crate `tmux_interface` as words without
//! quotes, and this module quotes them for either way.
//!
//! Invariant: a list has at least one command, because [`CommandList::new`] takes one. tmux does
//! not reply to an empty line, so a caller would wait for a reply in vain.

use tmux_interface::TmuxCommand;

use crate::InvalidArgument;
use crate::quote_for_command_parser::quote;

/// Commands that tmux runs one after another, until one fails.
#[derive(Debug, Clone)]
pub(crate) struct CommandList(Vec<Vec<String>>);

impl CommandList {
    /// Returns a list of one command.
    pub(crate) fn new(command: &TmuxCommand<'_>) -> CommandList {
        CommandList(vec![command_words(command)])
    }

    /// Appends one command.
    pub(crate) fn with_command(mut self, command: &TmuxCommand<'_>) -> CommandList {
        self.0.push(command_words(command));
        self
    }

    /// Appends all commands of `other`.
    pub(crate) fn extend(mut self, other: CommandList) -> CommandList {
        self.0.extend(other.0);
        self
    }

    /// Returns the command list as one line for tmux's command parser, without a newline.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a word contains NUL.
    pub(crate) fn to_command_line(&self) -> Result<String, InvalidArgument> {
        let commands: Result<Vec<String>, InvalidArgument> =
            self.0.iter().map(|words| quote_words(words)).collect();
        Ok(commands?.join(" ; "))
    }

    /// Returns the command list as arguments of the tmux program. tmux takes a `;` at the end of an
    /// argument as the end of a command, so a backslash is put before such a `;`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a word contains NUL.
    pub(crate) fn to_args(&self) -> Result<Vec<String>, InvalidArgument> {
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

fn quote_words(words: &[String]) -> Result<String, InvalidArgument> {
    let words: Result<Vec<String>, InvalidArgument> = words.iter().map(|word| quote(word)).collect();
    Ok(words?.join(" "))
}

/// Puts a backslash before a `;` at the end of `word`.
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

    fn print_and_kill(message: &str) -> CommandList {
        let message = DisplayMessage::new().print().message(message).build();
        CommandList::new(&message).with_command(&KillPane::new().target_pane("%1").build())
    }

    #[test]
    fn command_line_separates_commands_and_quotes_arguments() {
        let line = print_and_kill("a;\nkill-server").to_command_line().unwrap();
        assert_eq!(line, r#""display-message" "-p" "a;\012kill-server" ; "kill-pane" "-t" "%1""#);
    }

    #[test]
    fn trailing_semicolon_is_escaped() {
        let args = print_and_kill(r"a\;").to_args().unwrap();
        assert_eq!(args, ["display-message", "-p", r"a\\;", ";", "kill-pane", "-t", "%1"]);
    }

    #[test]
    fn nul_is_rejected() {
        assert!(print_and_kill("\0").to_command_line().is_err());
        assert!(print_and_kill("\0").to_args().is_err());
    }
}
