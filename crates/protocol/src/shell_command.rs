//! A shell's command line, looked at for one question: is it one plain command, whose words are what they seem?
//!
//! Whatever could be more (a second command, a substitution, a redirection) is not taken apart but is none: a rule
//! that permits `cargo *` must not permit `cargo x; rm -r ~`.

/// The words of a plain command; none where it is, or may be, more than that.
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

/// Up to the end of the quotes; none where they have no end, or hold what is special in them.
fn read_quoted(rest: &mut std::str::Chars<'_>, end: char, special: &str, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            c if c == end => return Some(()),
            c if special.contains(c) => return None,
            c => word.push(c),
        }
    }
}

/// The commands that a line may consist of, cut at everything that could separate two: for rules that refuse.
pub fn split_commands(text: &str) -> Vec<&str> {
    let separators = |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '`' | '\n' | '\r' | '{' | '}' | '$');
    text.split(separators).map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_is_its_words() {
        assert_eq!(
            parse_plain_command("cargo  test -p 'a b'\t\"c;d\"").unwrap(),
            ["cargo", "test", "-p", "a b", "c;d"]
        );
        assert_eq!(parse_plain_command("send ann 'fix it; then $(stop) `x` \\'").unwrap().len(), 3);
        assert_eq!(parse_plain_command("x ''").unwrap(), ["x", ""]);
    }

    #[test]
    fn what_may_be_more_than_one_command_is_none() {
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
    fn every_command_of_a_line_is_a_piece() {
        assert_eq!(
            split_commands("cd x && sudo rm y; (z)\nw `v` $(u)"),
            ["cd x", "sudo rm y", "z", "w", "v", "u"]
        );
    }
}
