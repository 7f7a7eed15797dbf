//! Splits shell command lines, for policy rules and delegate mode.
//!
//! A rule that allows `cargo *` must not allow `cargo x; rm -r ~`. So only a plain command is split
//! into words. A plain command cannot contain a second command, a substitution or a redirection.

/// The words of a plain command. `None` if `text` is, or could be, more than one plain command.
pub fn parse_plain_command(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => read_quoted(&mut rest, '\'', "", word.get_or_insert_default())?,
            '"' => read_quoted(&mut rest, '"', "$`\\!", word.get_or_insert_default())?,
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' => return None,
            c if c.is_control() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

/// Reads a quoted text up to its closing quote `end`, and appends the text to `word`. `None` if the
/// closing quote is missing, or if the text contains one of the characters in `special`.
fn read_quoted(rest: &mut std::str::Chars<'_>, end: char, special: &str, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            c if c == end => return Some(()),
            c if special.contains(c) => return None,
            c => word.push(c),
        }
    }
}

/// Splits `text` at every character that can separate two commands. Used for rules that deny or
/// ask.
pub fn split_commands(text: &str) -> Vec<&str> {
    let separators = |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '`' | '\n' | '\r' | '{' | '}' | '$');
    text.split(separators).map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_command_is_split_into_words() {
        assert_eq!(
            parse_plain_command("cargo  test -p 'a b'\t\"c;d\"").unwrap(),
            ["cargo", "test", "-p", "a b", "c;d"]
        );
        assert_eq!(parse_plain_command("send ann 'fix it; then $(stop) `x` \\'").unwrap().len(), 3);
        assert_eq!(parse_plain_command("x ''").unwrap(), ["x", ""]);
    }

    #[test]
    fn compound_commands_are_not_plain() {
        for text in [
            "",
            "  ",
            "a; b",
            "a && b",
            "a | b",
            "a\nb",
            "a & ",
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a \"`b`\"",
            "a > b",
            "a < b",
            "(a)",
            "a $b",
            "a 'b",
            "a \"b",
            "a \\; b",
            "a\rb",
            "a \"\\$(b)\"",
            "a\u{b}b",
        ] {
            assert_eq!(parse_plain_command(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_command_of_a_line_is_split_off() {
        assert_eq!(
            split_commands("cd x && sudo rm y; (z)\nw `v` $(u)"),
            ["cd x", "sudo rm y", "z", "w", "v", "u"]
        );
    }
}
