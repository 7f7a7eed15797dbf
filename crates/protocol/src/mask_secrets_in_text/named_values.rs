//! Finds values whose names stand for secrets: `API_KEY=value`, `password: value`,
//! `"apiKey": "value"`.

use super::words_and_values::{value_length, words};
use crate::redact_variables::is_secret_name;
use std::ops::Range;

/// Ends of the names of passwords, in small letters and without separators. Any value is one.
const PASSWORD_NAMES: [&str; 5] = ["password", "passwd", "passphrase", "passcode", "secret"];

/// Ends of the names of other secrets. An ordinary word is no value.
const TOKEN_NAMES: [&str; 15] = [
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "signingkey",
    "encryptionkey",
    "accountkey",
    "masterkey",
    "servicekey",
    "clientkey",
    "credential",
    "credentials",
    "cookie",
];

/// Last words of names that count only as whole words: `compass` is no password.
const PASSWORD_WORDS: [&str; 2] = ["pass", "pwd"];

/// Words that programs and schemas have in the place of a value.
const TYPES_AND_NO_VALUES: [&str; 14] = [
    "string",
    "str",
    "option",
    "vec",
    "bytes",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "any",
    "required",
    "optional",
];

/// How sure a name is that its value is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameClass {
    Password,
    Token,
}

/// Whether a key of a JSON object stands for a secret.
pub(super) fn is_name_of_secret(name: &str) -> bool {
    class_of_name(name).is_some()
}

/// The values in `text` whose names stand for secrets.
pub(super) fn named_values(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    words(text, is_in_name).filter_map(|name| {
        let (name, rest) = (&text[name.clone()], &text[name.end..]);
        let is_variable = rest.starts_with('=') && is_capital_name(name) && is_secret_name(name);
        let class = if is_variable { Some(NameClass::Password) } else { class_of_name(name) }?;
        let value = after_separator(rest)?;
        let (quoted, quote) = strip_quote(value);
        let start = text.len() - quoted.len();
        let length = match quote {
            Some(quote) => quoted_length(quoted, quote),
            None => value_length(quoted),
        };
        let shown = &quoted[..length];
        let is_value = !quoted.starts_with('$')
            && !shown.is_empty()
            && (quote.is_some() || is_variable || !is_ordinary(shown, class));
        is_value.then_some(start..start + length)
    })
}

fn is_capital_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn class_of_name(name: &str) -> Option<NameClass> {
    let joined = name.replace(['_', '-', '.'], "").to_ascii_lowercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default().to_ascii_lowercase();
    // PWD alone is the current directory, and `pass: 3` counts tests.
    let is_password_word = PASSWORD_WORDS.contains(&&*last) && !["pwd", "pass"].contains(&&*joined);
    if is_password_word || PASSWORD_NAMES.iter().any(|end| joined.ends_with(end)) {
        return Some(NameClass::Password);
    }
    let is_capital = name.contains('_') && is_capital_name(name) && is_secret_name(name);
    let is_token = is_capital || joined == "pass" || TOKEN_NAMES.iter().any(|end| joined.ends_with(end));
    is_token.then_some(NameClass::Token)
}

/// The text after the separator of a name and its value. `None` if there is none.
fn after_separator(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('\\');
    let text = text.strip_prefix(['"', '\'', '`', ']']).unwrap_or(text).trim_start_matches([' ', '\t']);
    let value = [":=", "=>", "=", ":"].iter().find_map(|separator| text.strip_prefix(separator))?;
    (!value.starts_with(['=', ':', '~'])).then(|| value.trim_start_matches([' ', '\t']))
}

/// The text after a quote, which may have backslashes before it in JSON.
fn strip_quote(text: &str) -> (&str, Option<char>) {
    let unescaped = text.trim_start_matches('\\');
    let quote = unescaped.chars().next().filter(|c| ['"', '\'', '`'].contains(c));
    quote.map_or((text, None), |c| (&unescaped[c.len_utf8()..], quote))
}

/// The length of a value up to its end quote. Without one, up to a space.
fn quoted_length(text: &str, quote: char) -> usize {
    let Some(end) = text.find([quote, '\n']).filter(|end| text[*end..].starts_with(quote)) else {
        return value_length(text);
    };
    text[..end].trim_end_matches('\\').len()
}

/// Whether an unquoted value is a word of a sentence, a type, or an expression of a program.
fn is_ordinary(value: &str, class: NameClass) -> bool {
    let word = value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    word.is_empty()
        || TYPES_AND_NO_VALUES.contains(&&*word)
        || class == NameClass::Token
            && (value.contains(['(', '[', '{'])
                || !value.bytes().any(|b| b.is_ascii_digit()) && value.len() < 20
                || value.bytes().all(|b| b.is_ascii_digit() || b".:)".contains(&b)) && value.len() < 10)
}
