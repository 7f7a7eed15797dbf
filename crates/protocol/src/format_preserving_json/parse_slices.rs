//! Parses arrays and objects into slices of a JSON text, and decodes strings.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

/// Why a JSON text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// The value has the wrong type.
    #[error("it should be an {expected}, but is {found}")]
    WrongType {
        /// `array` or `object`.
        expected: &'static str,
        /// The beginning of the value.
        found: String,
    },
    /// The text is nested deeper than 1000 levels. Parsers of other programs may fail on such a
    /// text, so it counts as damaged.
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Maximum accepted nesting, in levels.
const MAX_DEPTH: usize = 1000;

/// An array in a JSON text.
#[derive(Debug)]
pub struct Array<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
    pub(super) elements: Vec<&'a RawValue>,
}

impl<'a> Array<'a> {
    /// Parses a text that is one array. A byte order mark before the array is skipped.
    pub fn parse(root: &'a str) -> Result<Array<'a>, JsonError> {
        let text = strip_bom(root);
        if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
            check_depth(elements.iter().copied(), MAX_DEPTH - 1)?;
            return Ok(Array { text: root, span: document_span(root, text), elements });
        }
        // The parser above does not say whether the text is invalid or has the wrong type.
        Array::from_raw(root, parse_document(root)?)
    }

    /// Reads `value` as an array. `value` must be a slice of `root`.
    pub fn from_raw(root: &'a str, value: &'a RawValue) -> Result<Array<'a>, JsonError> {
        expect_start(value, '[', "array")?;
        let elements = serde_json::from_str(value.get())?;
        Ok(Array { text: root, span: span(root, value), elements })
    }

    /// The elements in the order of the text.
    pub fn elements(&self) -> &[&'a RawValue] {
        &self.elements
    }

    /// For each element, the offset just after the `[` or `,` before it. A caller that needs only
    /// the last elements parses `[` and the text from this offset on.
    pub fn element_starts(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        let start = |index: usize| match index.checked_sub(1) {
            Some(before) => {
                let end = span(self.text, self.elements[before]).end;
                // Only white space can stand between an element and its comma.
                end + self.text[end..].find(',').unwrap_or_default() + 1
            }
            None => self.span.start + 1,
        };
        (0..self.elements.len()).map(start)
    }
}

/// An object in a JSON text.
#[derive(Debug)]
pub struct Object<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
    pub(super) fields: Vec<(&'a RawValue, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Parses a text that is one object. A byte order mark before the object is skipped.
    pub fn parse(root: &'a str) -> Result<Object<'a>, JsonError> {
        let text = strip_bom(root);
        if let Ok(Fields(fields)) = serde_json::from_str(text) {
            check_depth(fields.iter().map(|(_, value)| *value), MAX_DEPTH - 1)?;
            return Ok(Object { text: root, span: document_span(root, text), fields });
        }
        // The parser above does not say whether the text is invalid or has the wrong type.
        Object::from_raw(root, parse_document(root)?)
    }

    /// Reads `value` as an object. `value` must be a slice of `root`.
    pub fn from_raw(root: &'a str, value: &'a RawValue) -> Result<Object<'a>, JsonError> {
        expect_start(value, '{', "object")?;
        let Fields(fields) = serde_json::from_str(value.get())?;
        Ok(Object { text: root, span: span(root, value), fields })
    }

    /// The value of `key`, spelled as in the text. `None` if the object has no such key.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.position(key).map(|at| self.fields[at].1)
    }

    /// All fields in the order of the text, with decoded keys. If a key cannot be decoded, its
    /// field is omitted.
    pub fn entries(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.fields.iter().filter_map(|(key, value)| Some((decode(key)?, *value)))
    }

    pub(super) fn position(&self, key: &str) -> Option<usize> {
        self.fields.iter().rposition(|(name, _)| is_literal(name, key))
    }
}

/// Whether the JSON string `literal` decodes to `text`. Decoding is slow, so only a literal that is
/// longer than `text` and has escapes is decoded: an escape is longer than the character that it
/// encodes.
fn is_literal(literal: &RawValue, text: &str) -> bool {
    let json = literal.get();
    match (json.len() - 2).cmp(&text.len()) {
        Ordering::Less => false,
        Ordering::Equal => json[1..json.len() - 1] == *text && !text.contains('\\'),
        Ordering::Greater => json.contains('\\') && decode(literal).is_some_and(|decoded| decoded == text),
    }
}

/// Decodes a string literal. Each lone surrogate becomes U+FFFD. `None` if `value` is not a string.
pub fn decode_string(value: &RawValue) -> Option<String> {
    decode(value).map(Cow::into_owned)
}

/// Decodes a string literal. Borrows from `value` if the literal has no escapes.
fn decode(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(&replace_lone_surrogates(json)).ok().map(Cow::Owned),
    }
}

/// Converts a JSON value for output. If no [`Value`] can hold it (1e999, deep nesting), the result
/// is a string with the value's JSON text.
pub fn to_value(raw: &RawValue) -> Value {
    serde_json::from_str(&replace_lone_surrogates(raw.get())).unwrap_or_else(|_| Value::from(raw.get()))
}

/// Replaces each escape of a lone surrogate in `json` by the escape of U+FFFD, because serde_json
/// cannot decode lone surrogates. JavaScript writes a lone surrogate when it cuts a text in the
/// middle of an emoji.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let (written, consumed) = read_escape(rest);
        repaired.push_str(written);
        rest = &rest[consumed..];
    }
    repaired.push_str(rest);
    Cow::Owned(repaired)
}

/// Reads the escape sequence at the start of `text`. Returns its replacement, and its length in
/// bytes. The replacement is `\ufffd` for a lone surrogate, and the sequence itself for any other
/// escape.
fn read_escape(text: &str) -> (&str, usize) {
    match (parse_code_unit(text), text.get(6..).and_then(parse_code_unit)) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (&text[..12], 12),
        (Some(0xd800..0xe000), _) => ("\\ufffd", 6),
        _ => {
            // Any other escape is a backslash and one character, which can be a second backslash.
            let length = text.chars().take(2).map(char::len_utf8).sum();
            (&text[..length], length)
        }
    }
}

fn parse_code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

fn parse_document(root: &str) -> Result<&RawValue, JsonError> {
    let document = serde_json::from_str(strip_bom(root))?;
    check_depth(std::iter::once(document), MAX_DEPTH)?;
    Ok(document)
}

/// Parses the JSON value at the start of `text`, after white space. Returns the value and the
/// offset of its end, or `None` if the text ends before the value does. The text after the value is
/// not checked.
///
/// # Errors
///
/// `Syntax`, with the line and column in the whole `text`, and `TooDeep`.
pub fn parse_first(text: &[u8]) -> Result<Option<(&RawValue, usize)>, JsonError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    match values.next() {
        None => Ok(None),
        Some(Err(error)) if error.is_eof() => Ok(None),
        Some(value) => {
            let value = value?;
            check_depth(std::iter::once(value), MAX_DEPTH - 1)?;
            Ok(Some((value, values.byte_offset())))
        }
    }
}

/// The text without a byte order mark at its start.
fn strip_bom(root: &str) -> &str {
    root.strip_prefix('\u{feff}').unwrap_or(root)
}

/// The byte range of the JSON value in `root`. `content` is `root` without the byte order mark.
fn document_span(root: &str, content: &str) -> Range<usize> {
    let white_space = [' ', '\t', '\n', '\r'];
    let start = root.len() - content.trim_start_matches(white_space).len();
    start..start + content.trim_matches(white_space).len()
}

/// Returns an error if a value is nested deeper than `deepest` levels. Each level takes two
/// brackets. So a value of at most twice `deepest` bytes cannot be too deep and is not scanned.
fn check_depth<'a>(mut values: impl Iterator<Item = &'a RawValue>, deepest: usize) -> Result<(), JsonError> {
    let too_deep = |value: &RawValue| {
        let text = value.get();
        text.len() > 2 * deepest && count_brackets(text) > deepest && nesting_depth(text) > deepest
    };
    if values.any(too_deep) { Err(JsonError::TooDeep) } else { Ok(()) }
}

/// Number of opening brackets in `text`, including brackets inside strings. The number is an upper
/// bound of [`nesting_depth`] that is faster to compute.
fn count_brackets(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

/// Nesting depth of a valid JSON text, in levels.
fn nesting_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

fn expect_start(value: &RawValue, open: char, expected: &'static str) -> Result<(), JsonError> {
    if value.get().starts_with(open) {
        return Ok(());
    }
    Err(JsonError::WrongType { expected, found: clip(value.get()) })
}

/// The first 60 characters of a value, for error messages.
pub(super) fn clip(json: &str) -> String {
    let mut short: String = json.chars().take(60).collect();
    if short.len() < json.len() {
        short.push('…');
    }
    short
}

/// The byte range of `part` in `root`. `part` must be a slice of `root`, because the range is
/// computed from the memory addresses.
pub(super) fn span(root: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - root.as_ptr().addr();
    start..start + part.get().len()
}

/// The fields of an object. Keys stay JSON string literals, because serde_json cannot decode a key
/// with a lone surrogate. One such key would make the whole object unreadable.
struct Fields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'de>, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}
