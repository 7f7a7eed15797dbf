//! Blanks in arguments that are filled later than all others: `{prompt}`, `{session}` and `{mode}` for each turn, `{color}`,
//! `{lead_session}` and the `{session}` of a life before when the daemon lets an agent start.

use crate::text::{shell_quote, single_quoted};

/// All there are.
pub const DEFERRED_VARIABLES: [&str; 5] = ["prompt", "session", "mode", "color", "lead_session"];

/// How each may be written: as it is, as JSON, as a word for a shell.
const ENCODING_SUFFIXES: [&str; 3] = ["", "_json", "_sh"];

/// What a blank is about: `{id_json}` is the same as `{id}`, written as JSON, `{id_sh}` as a word of a shell's.
pub fn base_name(name: &str) -> &str {
    name.strip_suffix("_json").or_else(|| name.strip_suffix("_sh")).unwrap_or(name)
}

/// The value of a blank as it is wanted there.
pub fn encode_value(name: &str, value: String) -> String {
    if name.ends_with("_json") {
        return serde_json::Value::from(value).to_string();
    }
    match name.ends_with("_sh") {
        // As the first word of a command, `a=b` would be an assignment.
        true if value.contains('=') => single_quoted(&value),
        true => shell_quote(&value),
        false => value,
    }
}

/// `text` as it must stand in an argument so that nothing in it is taken for a blank. No argument can hold a zero
/// byte: one breaks each blank up, and `filled` takes it out again.
pub fn escape_variables(text: &str) -> String {
    let broken = |text: String, name: &str| text.replace(&format!("{{{name}}}"), &format!("{{\0{name}}}"));
    let all = DEFERRED_VARIABLES
        .iter()
        .flat_map(|name| ENCODING_SUFFIXES.map(|spelling| format!("{name}{spelling}")));
    all.fold(text.to_owned(), |text, name| broken(text, &name))
}

/// `text` with every blank filled that `value` knows, spelled as is wanted there; what it puts there is not looked at
/// again.
pub fn fill<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = next_variable(rest) {
        out.push_str(before);
        match value(base_name(name)) {
            Some(value) => out.push_str(&encode_value(name, value.replace('\0', ""))),
            None => out.push_str(&format!("{{{name}}}")),
        }
        rest = after;
    }
    out.push_str(rest);
    out.replace('\0', "")
}

/// Whether the blank `name` stands in `text`, however it is spelled.
pub fn has_variable(text: &str, name: &str) -> bool {
    let mut rest = text;
    while let Some((_, found, after)) = next_variable(rest) {
        if base_name(found) == name {
            return true;
        }
        rest = after;
    }
    false
}

/// What stands before the next blank, its name, and what stands after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(open, _)| {
        let (name, after) = text[open + 1..].split_once('}')?;
        DEFERRED_VARIABLES.contains(&base_name(name)).then_some((&text[..open], name, after))
    })
}

/// A text that is an argument of its own must not be taken for an option: where no `--` stands before it, a space does.
pub fn guard_leading_dash(template: &[String], text: &str) -> String {
    let own = template.iter().position(|argument| argument == "{prompt}" || argument == "{prompt_sh}");
    let dashes = template.iter().position(|argument| argument == "--");
    match own {
        Some(own) if text.starts_with('-') && dashes.is_none_or(|dashes| dashes > own) => format!(" {text}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_literal_arrives_as_it_stood_and_blanks_are_filled_once() {
        let value = |name: &str| match name {
            "color" => Some("{session}"),
            "session" => Some("s"),
            _ => None,
        };
        assert_eq!(fill("{color}{session}{prompt}{x}{", value), "{session}s{prompt}{x}{");
        for text in ["{color}", "{{session}}", "{prompt}{color", "{\"a\":1}", "é{", ""] {
            assert_eq!(fill(&escape_variables(text), value), text);
        }
        assert_eq!(fill(&format!("{}={{color}}", escape_variables("{color}")), value), "{color}={session}");
    }

    #[test]
    fn a_late_blank_is_spelled_as_an_early_one_is() {
        let value = |name: &str| (name == "prompt").then_some("it's \"{session_sh}\"\0");
        assert_eq!(fill("a={prompt_sh}", value), "a='it'\\''s \"{session_sh}\"'");
        assert_eq!(fill("{\"a\":{prompt_json}}", value), r#"{"a":"it's \"{session_sh}\""}"#);
        for text in ["{prompt_sh}", "{session_json}", "{lead_session_sh}"] {
            assert_eq!(fill(&escape_variables(text), |_| Some("x")), text);
        }
        assert!(has_variable("{a{prompt_sh}", "prompt") && has_variable("{prompt}", "prompt"));
        assert!(
            !has_variable("{prompts} {prompt", "prompt")
                && !has_variable(&escape_variables("{prompt_json}"), "prompt")
        );
    }

    #[test]
    fn a_value_is_spelled_for_where_it_stands() {
        assert_eq!((base_name("id_json"), base_name("id_sh"), base_name("id")), ("id", "id", "id"));
        assert_eq!(encode_value("id", "a'b".to_owned()), "a'b");
        assert_eq!(encode_value("id_json", "a\"b\n".to_owned()), r#""a\"b\n""#);
        for (value, wanted) in [("/a/b", "/a/b"), ("", "''"), ("a b", "'a b'"), ("a'$(b)", r"'a'\''$(b)'")] {
            assert_eq!(encode_value("id_sh", value.to_owned()), wanted);
        }
    }
}
