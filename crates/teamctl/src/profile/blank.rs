//! The blanks of a profile's texts: `{cwd}`, `{prompt}`… A word of small letters in braces is a blank, all
//! other braces stay as they are, so JSON in an argument needs no care.

pub(super) use protocol::deferred_variables::{base_name, encode_value};

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Plain(&'a str),
    Blank(&'a str),
}

/// The names of all blanks in `text`.
pub(super) fn blanks(text: &str) -> Vec<&str> {
    let named = |piece| match piece {
        Piece::Blank(name) => Some(name),
        Piece::Plain(_) => None,
    };
    pieces(text).into_iter().filter_map(named).collect()
}

/// The text with every blank filled that `value` knows; what it puts there is not looked at again.
pub(super) fn filled(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let piece = |piece| match piece {
        Piece::Plain(text) => text.to_owned(),
        Piece::Blank(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    };
    pieces(text).into_iter().map(piece).collect()
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        let name = braced[1..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
        let end = name.map_or(1, |name| name.len() + 2);
        pieces.push(Piece::Plain(before));
        pieces.push(name.map_or(Piece::Plain(&braced[..end]), Piece::Blank));
        rest = &braced[end..];
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_braces_is_a_blank_and_other_braces_are_not() {
        assert_eq!(blanks("a {cwd}{name}{{id} é {"), ["cwd", "name", "id"]);
        assert!(blanks(r#"{"a": {"b": 1}, "c": {}} {A} {a b} {1}"#).is_empty());
    }

    #[test]
    fn what_is_filled_in_is_not_read_again_and_the_rest_stays() {
        let value = |name: &str| (name == "a").then(|| "{b}{a}".to_owned());
        assert_eq!(filled("x{a}y{b}{\"a\":1}", value), "x{b}{a}y{b}{\"a\":1}");
        assert_eq!(filled("", value), "");
    }
}
