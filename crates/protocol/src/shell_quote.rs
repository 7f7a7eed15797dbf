//! Quotes words of shell command lines.

/// `word` as one word of a shell command line. Quoted only if necessary.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    // zsh replaces `=NAME` by the path of the program NAME.
    match !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => single_quoted(word),
    }
}

/// `word` in single quotes.
pub(crate) fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_quote_makes_one_word() {
        assert_eq!([shell_quote("ann@t"), shell_quote("a b"), shell_quote("")], ["ann@t", "'a b'", "''"]);
        assert_eq!([shell_quote("=teamd"), shell_quote("A=b")], ["'=teamd'", "A=b"]);
        assert_eq!(shell_quote("a'b; rm -r ~"), r"'a'\''b; rm -r ~'");
    }
}
