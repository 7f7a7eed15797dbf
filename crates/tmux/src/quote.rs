//! Words as tmux's own parser reads them back, byte for byte.
//!
//! Every word stands in double quotes. Inside them tmux still knows the backslash, `$NAME` and a leading `~`; those
//! are escaped, and so is every control character, since a newline would end the command. NUL has no spelling.

use std::fmt::Write;

use crate::Error;

/// `word` in quotes.
///
/// # Errors
/// `Invalid` for a word with NUL in it.
pub(crate) fn quote(word: &str) -> Result<String, Error> {
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('"');
    for c in word.chars() {
        match c {
            '\0' => return Err(Error::invalid_argument(word, "it holds a NUL")),
            '\\' | '"' | '$' | '~' => quoted.extend(['\\', c]),
            // DEL too; tmux knows three octal digits since long before 3.2.
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
        for (word, want) in [
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
            assert_eq!(quote(word).unwrap(), want);
        }
    }

    #[test]
    fn nul_is_rejected() {
        assert!(quote("a\0b").is_err());
    }
}
