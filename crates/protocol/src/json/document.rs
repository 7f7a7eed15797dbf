//! Arrays and objects as slices of a JSON text, and the text of its strings.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

/// Why a text can't be looked into as asked.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// JSON, but of another shape.
    #[error("it should be an {expected}, but is {found}")]
    WrongType {
        /// `array` or `object`.
        expected: &'static str,
        /// The beginning of what is there.
        found: String,
    },
    /// JSON, but nested beyond all reason: others' parsers may fall over it, and so it counts as damage.
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The deepest nesting that is taken for somebody's data.
const MAX_DEPTH: usize = 1000;

/// An array in a text.
#[derive(Debug)]
pub struct Array<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
    pub(super) elements: Vec<&'a RawValue>,
}

impl<'a> Array<'a> {
    /// The whole text is the array; a byte order mark is skipped.
    pub fn parse(root: &'a str) -> Result<Array<'a>, JsonError> {
        let text = strip_bom(root);
        if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
            check_depth(elements.iter().copied(), MAX_DEPTH - 1)?;
            return Ok(Array { text: root, span: document_span(root, text), elements });
        }
        // Not an array, or not JSON: looked at anew for an error that says which.
        Array::from_raw(root, parse_document(root)?)
    }

    /// `value`, which must be a slice of `root`, is the array.
    pub fn from_raw(root: &'a str, value: &'a RawValue) -> Result<Array<'a>, JsonError> {
        expect_start(value, '[', "array")?;
        let elements = serde_json::from_str(value.get())?;
        Ok(Array { text: root, span: span(root, value), elements })
    }

    /// The elements, in order.
    pub fn elements(&self) -> &[&'a RawValue] {
        &self.elements
    }

    /// Where in the text each element's part begins: behind the bracket or the comma before it. A bracket and what stands
    /// from there on is the array without the elements before.
    pub fn element_starts(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        let begins = |at: usize| match at.checked_sub(1) {
            Some(before) => {
                let end = span(self.text, self.elements[before]).end;
                // Nothing but white space stands between an element and its comma.
                end + self.text[end..].find(',').unwrap_or_default() + 1
            }
            None => self.span.start + 1,
        };
        (0..self.elements.len()).map(begins)
    }

    /// Where in the text the last element ends; none if there is none.
    pub fn last_end(&self) -> Option<usize> {
        self.elements.last().map(|last| span(self.text, last).end)
    }
}

/// An object in a text.
#[derive(Debug)]
pub struct Object<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
    pub(super) fields: Vec<(&'a RawValue, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// The whole text is the object; a byte order mark is skipped.
    pub fn parse(root: &'a str) -> Result<Object<'a>, JsonError> {
        let text = strip_bom(root);
        if let Ok(Fields(fields)) = serde_json::from_str(text) {
            check_depth(fields.iter().map(|(_, value)| *value), MAX_DEPTH - 1)?;
            return Ok(Object { text: root, span: document_span(root, text), fields });
        }
        // Not an object, or not JSON: looked at anew for an error that says which.
        Object::from_raw(root, parse_document(root)?)
    }

    /// `value`, which must be a slice of `root`, is the object.
    pub fn from_raw(root: &'a str, value: &'a RawValue) -> Result<Object<'a>, JsonError> {
        expect_start(value, '{', "object")?;
        let Fields(fields) = serde_json::from_str(value.get())?;
        Ok(Object { text: root, span: span(root, value), fields })
    }

    /// The value under `key`, as it is spelled.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.position(key).map(|at| self.fields[at].1)
    }

    /// All fields in order, keys decoded; one that can't be is left out.
    pub fn entries(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.fields.iter().filter_map(|(key, value)| Some((decode(key)?, *value)))
    }

    pub(super) fn position(&self, key: &str) -> Option<usize> {
        self.fields.iter().rposition(|(name, _)| is_literal(name, key))
    }
}

/// Whether a literal says `text`. An escape is longer than what it says, so most literals need not be decoded.
fn is_literal(literal: &RawValue, text: &str) -> bool {
    let json = literal.get();
    match (json.len() - 2).cmp(&text.len()) {
        Ordering::Less => false,
        Ordering::Equal => json[1..json.len() - 1] == *text && !text.contains('\\'),
        Ordering::Greater => json.contains('\\') && decode(literal).is_some_and(|said| said == text),
    }
}

/// What a string literal says, with U+FFFD for each half of a pair that stands alone; none if it is no string.
pub fn decode_string(value: &RawValue) -> Option<String> {
    decode(value).map(Cow::into_owned)
}

/// The same; a literal without escapes says what stands between its quotes.
fn decode(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(&replace_lone_surrogates(json)).ok().map(Cow::Owned),
    }
}

/// A value for showing; what no [`Value`] can hold (1e999, deep nesting) as a string of how it is spelled.
pub fn to_value(raw: &RawValue) -> Value {
    serde_json::from_str(&replace_lone_surrogates(raw.get())).unwrap_or_else(|_| Value::from(raw.get()))
}

/// `json` with every lone surrogate's escape replaced by U+FFFD's: what serde_json refuses to decode, and
/// JavaScript writes when it cuts a text inside an emoji.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let (written, consumed) = read_escape(rest);
        whole.push_str(written);
        rest = &rest[consumed..];
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// The escape at the start of `text`: how to write it, and how many bytes it takes.
fn read_escape(text: &str) -> (&str, usize) {
    match (parse_code_unit(text), text.get(6..).and_then(parse_code_unit)) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (&text[..12], 12),
        (Some(0xd800..0xe000), _) => ("\\ufffd", 6),
        _ => {
            // Any other escape is a backslash and one more character, which may itself be a backslash.
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

/// The value that `text` begins with, white space before it left out, and where it ends; none where the text ends before
/// it does. What stands behind it may be anything.
///
/// # Errors
/// `Syntax`, `Depth`. The line and column are those of the whole of `text`.
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

/// The text behind a byte order mark.
fn strip_bom(root: &str) -> &str {
    root.strip_prefix('\u{feff}').unwrap_or(root)
}

/// Where in `root` the document of its `content` lies.
fn document_span(root: &str, content: &str) -> Range<usize> {
    let blank = [' ', '\t', '\n', '\r'];
    let start = root.len() - content.trim_start_matches(blank).len();
    start..start + content.trim_matches(blank).len()
}

/// Refuses values nested deeper than `deepest`. It takes two brackets a level, so a short one need not be
/// looked through.
fn check_depth<'a>(mut values: impl Iterator<Item = &'a RawValue>, deepest: usize) -> Result<(), JsonError> {
    let too_deep = |value: &RawValue| {
        let text = value.get();
        text.len() > 2 * deepest && count_brackets(text) > deepest && nesting_depth(text) > deepest
    };
    if values.any(too_deep) { Err(JsonError::TooDeep) } else { Ok(()) }
}

/// No text is nested deeper than it has these, wherever they stand; they are counted in a fraction of the time.
fn count_brackets(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

/// How deep a valid JSON text is nested.
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

/// Enough of a value to recognise it in an error.
pub(super) fn clip(json: &str) -> String {
    let mut short: String = json.chars().take(60).collect();
    if short.len() < json.len() {
        short.push('…');
    }
    short
}

/// Where in `root` the slice `part` lies. Both come from one parse, so the addresses tell.
pub(super) fn span(root: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - root.as_ptr().addr();
    start..start + part.get().len()
}

/// Keys as they are spelled: one with a lone surrogate can't be decoded, and must not fail the object.
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
