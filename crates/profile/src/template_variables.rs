//! Template variables in the texts of a profile, such as `{cwd}` or `{prompt}`.
//!
//! A variable is a word of lower-case letters and underscores in braces. All other braces are
//! ordinary text, so JSON in an argument needs no escapes.

pub(crate) use protocol::deferred_template_variables::{base_name, encode_value};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// The names of all variables in `text`.
pub(crate) fn variables_in(text: &str) -> Vec<&str> {
    let variable_name = |part| match part {
        TemplatePart::Variable(name) => Some(name),
        TemplatePart::Text(_) => None,
    };
    parse_template(text).into_iter().filter_map(variable_name).collect()
}

/// Replaces each variable for which `value` returns a text; other variables are not changed.
/// Variables in the inserted texts are not replaced.
pub(crate) fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let part = |part| match part {
        TemplatePart::Text(text) => text.to_owned(),
        TemplatePart::Variable(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    };
    parse_template(text).into_iter().map(part).collect()
}

fn parse_template(text: &str) -> Vec<TemplatePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        let name = braced[1..].split_once('}').map(|(name, _)| name).filter(|name| is_variable_name(name));
        let end = name.map_or(1, |name| name.len() + 2);
        parts.push(TemplatePart::Text(before));
        parts.push(name.map_or(TemplatePart::Text(&braced[..end]), TemplatePart::Variable));
        rest = &braced[end..];
    }
    parts.push(TemplatePart::Text(rest));
    parts
}

fn is_variable_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowercase_name_in_braces_is_a_variable_and_other_braces_are_not() {
        assert_eq!(variables_in("a {cwd}{name}{{id} é {"), ["cwd", "name", "id"]);
        assert!(variables_in(r#"{"a": {"b": 1}, "c": {}} {A} {a b} {1}"#).is_empty());
    }

    #[test]
    fn values_are_not_expanded_again_and_unknown_variables_are_kept() {
        let value = |name: &str| (name == "a").then(|| "{b}{a}".to_owned());
        assert_eq!(fill("x{a}y{b}{\"a\":1}", value), "x{b}{a}y{b}{\"a\":1}");
        assert_eq!(fill("", value), "");
    }
}
