//! What a caller hands in as a name or as a command, looked at before it goes anywhere.
//!
//! tmux expands formats in the names of windows and sessions, so only letters that mean nothing to it pass. A command
//! of a single word would go through the user's shell, so there must be two.

use crate::Error;

/// True of one to 64 letters, digits, underscores and dashes.
pub(crate) fn is_plain_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A name for a window or a session, as it stands.
///
/// # Errors
/// `Invalid` if it is not plain.
pub(crate) fn check_name(text: &str) -> Result<&str, Error> {
    if is_plain_name(text) {
        return Ok(text);
    }
    Err(Error::invalid_argument(text, "a name is 1 to 64 letters, digits, underscores and dashes"))
}

/// A program and its arguments, as they stand.
///
/// # Errors
/// `Invalid` below two words, or for an empty program.
pub(crate) fn check_argv(words: &[String]) -> Result<&[String], Error> {
    match words {
        [program, _, ..] if !program.is_empty() => Ok(words),
        _ => {
            Err(Error::invalid_argument(&words.join(" "), "a command is a program and at least one argument"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_pass() {
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
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(check_argv(&words(&["a", ""])).is_ok());
        for list in [&[][..], &["a"], &["", "b"]] {
            assert!(check_argv(&words(list)).is_err(), "{list:?}");
        }
    }
}
