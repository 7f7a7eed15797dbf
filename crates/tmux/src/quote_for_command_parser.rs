//! Quotes words for tmux's command parser.
//!
//! Every word is put into double quotes. Between double quotes tmux still interprets a backslash,
//! `$NAME` and a leading `~`, so these characters and the double quote are escaped. Control
//! characters are escaped too, because a newline would end the command. NUL cannot be written at
//! all.

use std::fmt::Write;

use crate::InvalidArgument;

/// Quotes `word`, so that tmux's command parser returns exactly the same bytes.
///
/// # Errors
///
/// `InvalidArgument` if `word` contains NUL.
pub(crate) fn quote(word: &str) -> Result<String, InvalidArgument> {
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('"');
    for c in word.chars() {
        match c {
            '\0' => return Err(InvalidArgument::new(word, "it contains a NUL")),
            '\\' | '"' | '$' | '~' => quoted.extend(['\\', c]),
            // This includes DEL. tmux has accepted three octal digits since long before 3.2.
            c if c.is_ascii_control() => write!(quoted, "\\{:03o}", u32::from(c)).expect("a String takes it"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        for (word, expected) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("# no comment", r##""# no comment""##),
            ("a;b", r#""a;b""#),
            ("$HOME", r#""\$HOME""#),
            ("~/x", r#""\~/x""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("a\nb\tc\x1b\x7f", r#""a\012b\011c\033\177""#),
            ("日本 🦀", "\"日本 🦀\""),
        ] {
            assert_eq!(quote(word).unwrap(), expected);
        }
    }

    #[test]
    fn nul_is_rejected() {
        assert!(quote("a\0b").is_err());
    }
}
