//! Checks names and commands that a caller passes in.
//!
//! tmux expands formats in the names of windows and sessions, so a name may have only characters
//! without a special meaning in tmux. A command must have at least two words, because tmux passes a
//! command of a single word to the user's shell.

use crate::InvalidArgument;

/// Whether `text` is 1 to 64 ASCII letters, digits, underscores and dashes.
pub(crate) fn is_plain_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Returns `text` unchanged if it is a valid name for a window or a session.
///
/// # Errors
///
/// `InvalidArgument` if [`is_plain_name`] returns false for `text`.
pub(crate) fn check_name(text: &str) -> Result<&str, InvalidArgument> {
    if is_plain_name(text) {
        return Ok(text);
    }
    Err(InvalidArgument::new(text, "a name is 1 to 64 letters, digits, underscores and dashes"))
}

/// Returns `words` unchanged if they are a program and at least one argument.
///
/// # Errors
///
/// `InvalidArgument` if there are fewer than two words or if the program is an empty string.
pub(crate) fn check_argv(words: &[String]) -> Result<&[String], InvalidArgument> {
    match words {
        [program, _, ..] if !program.is_empty() => Ok(words),
        _ => Err(InvalidArgument::new(&words.join(" "), "a command is a program and at least one argument")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_accepted() {
        assert!(check_name("team_1-A").is_ok());
        assert!(check_name("-x").is_ok());
        for text in
            ["", "#(touch x)", "a;b", "a b", "a\nb", "日本", "a.b", "a:b", "#{pid}", "%H", "$HOME", "~"]
        {
            assert!(check_name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn single_word_command_is_rejected() {
        let argv = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(check_argv(&argv(&["a", ""])).is_ok());
        for list in [&[][..], &["a"], &["", "b"]] {
            assert!(check_argv(&argv(list)).is_err(), "{list:?}");
        }
    }
}
