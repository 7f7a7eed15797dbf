//! The blanks of a profile's texts: `{cwd}`, `{prompt}`… A word of small letters in braces is a blank, all
//! other braces stay as they are, so JSON in an argument needs no care.

pub(crate) use protocol::deferred_variables::{base_name, encode_value};

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// The names of all blanks in `text`.
pub(crate) fn variables_in(text: &str) -> Vec<&str> {
    let named = |piece| match piece {
        TemplatePart::Variable(name) => Some(name),
        TemplatePart::Text(_) => None,
    };
    parse_template(text).into_iter().filter_map(named).collect()
}

/// The text with every blank filled that `value` knows; what it puts there is not looked at again.
pub(crate) fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let piece = |piece| match piece {
        TemplatePart::Text(text) => text.to_owned(),
        TemplatePart::Variable(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    };
    parse_template(text).into_iter().map(piece).collect()
}

fn parse_template(text: &str) -> Vec<TemplatePart<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        let name = braced[1..].split_once('}').map(|(name, _)| name).filter(|name| is_variable_name(name));
        let end = name.map_or(1, |name| name.len() + 2);
        pieces.push(TemplatePart::Text(before));
        pieces.push(name.map_or(TemplatePart::Text(&braced[..end]), TemplatePart::Variable));
        rest = &braced[end..];
    }
    pieces.push(TemplatePart::Text(rest));
    pieces
}

fn is_variable_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_braces_is_a_blank_and_other_braces_are_not() {
        assert_eq!(variables_in("a {cwd}{name}{{id} é {"), ["cwd", "name", "id"]);
        assert!(variables_in(r#"{"a": {"b": 1}, "c": {}} {A} {a b} {1}"#).is_empty());
    }

    #[test]
    fn what_is_filled_in_is_not_read_again_and_the_rest_stays() {
        let value = |name: &str| (name == "a").then(|| "{b}{a}".to_owned());
        assert_eq!(fill("x{a}y{b}{\"a\":1}", value), "x{b}{a}y{b}{\"a\":1}");
        assert_eq!(fill("", value), "");
    }
}
