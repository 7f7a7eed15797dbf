//! Finds secrets in a text. The text may contain escape sequences of terminals, or be JSON with its
//! own escapes.

use super::named_values::named_values;
use super::url_and_curl_passwords::{curl_passwords, url_passwords};
use super::words_and_values::{value_length, words};
use crate::redact_variables::SECRET_PREFIXES;
use std::ops::Range;

/// Prefixes with which no ordinary word begins. A word with such a prefix is a secret if
/// `MIN_AFTER_UNIQUE_PREFIX` characters follow. Other prefixes need `MIN_AFTER_PREFIX` characters,
/// because ordinary words can have them, such as `sk-learn`.
const UNIQUE_PREFIXES: [&str; 8] = ["ghp_", "gho_", "ghu_", "ghs_", "github_pat_", "glpat-", "AKIA", "AIza"];
const MIN_AFTER_UNIQUE_PREFIX: usize = 8;
const MIN_AFTER_PREFIX: usize = 12;

/// The minimum number of letters and digits in a token without a known prefix. The token must also
/// have at least [`MIN_OF_EACH_CLASS`] digits, as many capitals, and as many small letters.
const MIN_MIXED_LENGTH: usize = 32;
const MIN_OF_EACH_CLASS: usize = 3;

/// The minimum length of a token after the word `Bearer` outside of an authorization header.
const MIN_BEARER_LENGTH: usize = 16;

/// The places of all secrets in `text`, in any order. They may overlap.
pub(super) fn find_secrets(text: &str) -> Vec<Range<usize>> {
    let is_key = |word: &Range<usize>| has_secret_prefix(&text[word.clone()]);
    let is_mixed = |word: &Range<usize>| is_mixed_token(&text[word.clone()]);
    private_keys(text)
        .chain(url_passwords(text))
        .chain(header_values(text))
        .chain(named_values(text))
        .chain(curl_passwords(text))
        .chain(words(text, |c| c.is_ascii_alphanumeric() || "_-.".contains(c)).filter(is_key))
        .chain(words(text, |c| c.is_ascii_alphanumeric() || "_-+/".contains(c)).filter(is_mixed))
        .collect()
}

fn has_secret_prefix(word: &str) -> bool {
    let after = |prefix: &&str| word.strip_prefix(*prefix);
    let is_long = |rest: &str| rest.len() >= MIN_AFTER_PREFIX && rest.bytes().any(|b| b.is_ascii_digit());
    UNIQUE_PREFIXES.iter().find_map(after).is_some_and(|rest| rest.len() >= MIN_AFTER_UNIQUE_PREFIX)
        || SECRET_PREFIXES.iter().find_map(after).is_some_and(is_long)
}

/// Whether a word looks random: it has digits, capitals and small letters, and its small letters
/// are in short runs. In paths and compound names, runs of small letters are longer. A hash in
/// hexadecimal digits is not a match, because it has either no capitals or no small letters.
fn is_mixed_token(word: &str) -> bool {
    let count = |is_in_class: fn(&u8) -> bool| word.bytes().filter(is_in_class).count();
    let (digits, capitals, small) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let small_runs = word.split(|c: char| !c.is_ascii_lowercase()).filter(|run| !run.is_empty()).count();
    digits + capitals + small >= MIN_MIXED_LENGTH
        && [digits, capitals, small].iter().all(|count| *count >= MIN_OF_EACH_CLASS)
        && small * 2 < small_runs * 5
}

/// The blocks of private keys. A block without an end reaches to the next quote, or to the end of
/// the text.
fn private_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("-----BEGIN ").filter_map(|(start, begin)| {
        let (title, block) = text[start + begin.len()..].split_once("-----")?;
        if !title.ends_with("PRIVATE KEY") || title.contains('\n') {
            return None;
        }
        let end = format!("-----END {title}-----");
        let length = match block.find(&end) {
            Some(position) => position + end.len(),
            None => block.find('"').unwrap_or(block.len()),
        };
        Some(start..text.len() - block.len() + length)
    })
}

/// The values of `Authorization` headers, and long tokens after the word `Bearer`.
fn header_values(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    words(text, is_letter).filter_map(move |word| match text[word.clone()].to_ascii_lowercase().as_str() {
        "authorization" => {
            let separators = |c: char| "\\\"': =".contains(c);
            let value = text[word.end..].trim_start_matches(separators);
            let has_separator =
                text[word.end..].trim_start_matches(['\\', '"', '\'']).starts_with([':', '=']);
            let start = text.len() - value.len();
            let scheme = ["bearer ", "basic ", "token ", "digest "].into_iter().find(|scheme| {
                value.get(..scheme.len()).is_some_and(|shown| shown.eq_ignore_ascii_case(scheme))
            });
            let start = start + scheme.map_or(0, str::len);
            Some(start..start + value_length(&text[start..]))
                .filter(|value| has_separator && !value.is_empty())
        }
        "bearer" => {
            let start = word.end + 1;
            let value = text[word.end..].strip_prefix(' ')?;
            let length = value_length(value);
            let has_digit = value[..length].bytes().any(|byte| byte.is_ascii_digit());
            (length >= MIN_BEARER_LENGTH && has_digit).then_some(start..start + length)
        }
        _ => None,
    })
}
