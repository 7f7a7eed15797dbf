//! Template variables in the arguments of an agent's program that are filled in only after the
//! spawn request.
//!
//! The daemon fills in `{color}` and `{lead_session}` when it starts the agent. If the program runs
//! as one process, the daemon also fills in `{session}`. If the program is started anew for each
//! turn, the shim fills in `{prompt}`, `{session}` and `{mode}` for that turn.

use crate::shell_quote::{shell_quote, single_quoted};

/// The names of all deferred variables.
pub const DEFERRED_VARIABLES: [&str; 5] = ["prompt", "session", "mode", "color", "lead_session"];

/// Suffixes of a variable's name that select the encoding of its value: none, JSON, shell word.
const ENCODING_SUFFIXES: [&str; 3] = ["", "_json", "_sh"];

/// The variable's name without its encoding suffix. The suffix `_json` selects the value as JSON,
/// and `_sh` the value as a shell word. For example, `id_json` and `id_sh` both give `id`.
pub fn base_name(name: &str) -> &str {
    name.strip_suffix("_json").or_else(|| name.strip_suffix("_sh")).unwrap_or(name)
}

/// Encodes `value` as the suffix of the variable `name` requires.
pub fn encode_value(name: &str, value: String) -> String {
    if name.ends_with("_json") {
        return serde_json::Value::from(value).to_string();
    }
    match name.ends_with("_sh") {
        // If `a=b` is the first word of a shell command, the shell takes it for an assignment. So a
        // value with `=` is quoted.
        true if value.contains('=') => single_quoted(&value),
        true => shell_quote(&value),
        false => value,
    }
}

/// Escapes the variables in `text`, so that [`fill`] does not replace them: inserts a zero byte
/// after the `{` of each variable. [`fill`] removes all zero bytes again. No argument can contain a
/// zero byte of its own.
pub fn escape_variables(text: &str) -> String {
    let escape = |text: String, name: &str| text.replace(&format!("{{{name}}}"), &format!("{{\0{name}}}"));
    let all =
        DEFERRED_VARIABLES.iter().flat_map(|name| ENCODING_SUFFIXES.map(|suffix| format!("{name}{suffix}")));
    all.fold(text.to_owned(), |text, name| escape(text, &name))
}

/// Replaces each variable in `text` by its value. `value` gets the variable's name without its
/// encoding suffix. The value that it returns is encoded as the suffix requires. If `value` returns
/// `None`, the variable stays in the text. Inserted values are not scanned for variables.
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

/// Whether `text` contains the variable `name`, with or without an encoding suffix.
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

/// Finds the next variable in `text`. Returns the text before it, its name, and the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(open, _)| {
        let (name, after) = text[open + 1..].split_once('}')?;
        DEFERRED_VARIABLES.contains(&base_name(name)).then_some((&text[..open], name, after))
    })
}

/// Returns the prompt `text`, with a space before it if the program could take the prompt for an
/// option: `text` starts with `-`, the prompt is a whole argument in `template`, and no argument
/// `--` comes before it.
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
    fn escaped_text_is_unchanged_and_variables_are_filled_once() {
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
    fn suffix_selects_the_encoding_of_a_filled_value() {
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
    fn base_name_and_encoding_follow_the_suffix() {
        assert_eq!((base_name("id_json"), base_name("id_sh"), base_name("id")), ("id", "id", "id"));
        assert_eq!(encode_value("id", "a'b".to_owned()), "a'b");
        assert_eq!(encode_value("id_json", "a\"b\n".to_owned()), r#""a\"b\n""#);
        for (value, expected) in [("/a/b", "/a/b"), ("", "''"), ("a b", "'a b'"), ("a'$(b)", r"'a'\''$(b)'")]
        {
            assert_eq!(encode_value("id_sh", value.to_owned()), expected);
        }
    }
}
