//! Splits a text into words and values, for the search for secrets. The text may contain escape
//! sequences of terminals, or be JSON with its own escapes.

use std::ops::Range;

/// The words of a text: the longest runs of characters that `is_in_word` accepts, without dots at
/// their start and end. Escape sequences, such as `\n` in JSON or the color of a terminal, are not
/// part of a word.
pub(super) fn words(text: &str, is_in_word: impl Fn(char) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut position = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[position..];
            let length = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
            if length > 0 {
                let word = &rest[..length];
                let start = position + length - word.trim_start_matches('.').len();
                let end = position + word.trim_end_matches('.').len();
                position += length;
                return Some(start.min(end)..end);
            }
            position += escape_length(rest).or_else(|| Some(rest.chars().next()?.len_utf8()))?;
        }
    })
}

/// The length of the escape sequence at the beginning of `text`. `None` if there is none.
fn escape_length(text: &str) -> Option<usize> {
    let escape =
        ["\u{1b}", "\\u001b", "\\x1b", "\\033", "\\e"].into_iter().find(|start| text.starts_with(start));
    if let Some(escape) = escape {
        let Some(sequence) = text[escape.len()..].strip_prefix('[') else { return Some(escape.len()) };
        let parameters = sequence.find(|c: char| !(c.is_ascii_digit() || ";?:".contains(c)))?;
        let last = sequence[parameters..].chars().next()?;
        return Some(escape.len() + 1 + parameters + last.len_utf8());
    }
    let escaped = text.strip_prefix('\\')?.chars().next()?;
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_code = escaped == 'u' && text.get(2..6).is_some_and(is_hex);
    Some(if has_code { 6 } else { 1 + escaped.len_utf8() })
}

/// The length of the value at the beginning of `text`. The value ends before the first space, quote
/// or escape. If `text` begins with `$`, it only names a shell variable and has no value, so the
/// result is 0.
pub(super) fn value_length(text: &str) -> usize {
    if text.starts_with('$') {
        return 0;
    }
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`\\,;<>".contains(c);
    text.find(is_end).unwrap_or(text.len())
}
