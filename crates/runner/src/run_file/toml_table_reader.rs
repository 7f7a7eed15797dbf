//! Reads the values of a TOML table by key. If a value has the wrong type, a validation error is
//! added, and the key counts as missing.

use crate::run_file::validation_errors::{Located, ValidationErrors, nearest_help};
use serde_json::{Map, Number, Value};
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A table of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableReader<'a> {
    table: &'a DeTable<'a>,
    /// Where the table begins, as a byte offset in the file.
    pub(crate) offset: usize,
    /// What kind of table it is, for errors, such as `a member`.
    kind: &'static str,
}

/// The value of a key that can be a string or a list of strings.
#[derive(Debug)]
pub(crate) enum StringOrList {
    String(String),
    List(Vec<String>),
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(table: &'a DeTable<'a>, offset: usize, kind: &'static str) -> TableReader<'a> {
        TableReader { table, offset, kind }
    }

    /// Adds an error for each key of the table that is not in `known_keys`.
    pub(crate) fn check_keys(&self, known_keys: &[&str], errors: &mut ValidationErrors) {
        for key in self.table.keys().filter(|key| !known_keys.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let message = format!("{} takes no key {name:?}{}", self.kind, nearest_help(name, known_keys));
            errors.push(key.span().start, message);
        }
    }

    /// The byte offset of the key. `None` if the table does not have it.
    pub(crate) fn key_offset(&self, key: &str) -> Option<usize> {
        self.table.get_key_value(key).map(|(key, _)| key.span().start)
    }

    fn get(&self, key: &str) -> Option<(Range<usize>, &'a DeValue<'a>)> {
        self.table.get(key).map(|value| (value.span(), value.get_ref()))
    }

    pub(crate) fn string(&self, key: &str, errors: &mut ValidationErrors) -> Option<Located<String>> {
        self.text(key, "a string", errors)
    }

    /// Reads a string. `expected` describes the allowed values in an error.
    pub(crate) fn text(
        &self,
        key: &str,
        expected: &str,
        errors: &mut ValidationErrors,
    ) -> Option<Located<String>> {
        let (span, value) = self.get(key)?;
        match value {
            DeValue::String(text) if text.contains('\0') => {
                errors.push(span.start, format!("{key} holds a NUL, which nothing can be called with"));
                None
            }
            DeValue::String(text) => Some(Located { offset: span.start, value: text.clone().into_owned() }),
            other => push_type_error(key, expected, other, span, errors),
        }
    }

    /// Reads a string that must exist and must not be empty.
    pub(crate) fn required_string(
        &self,
        key: &str,
        errors: &mut ValidationErrors,
    ) -> Option<Located<String>> {
        if self.get(key).is_none() {
            errors.push_missing(self.offset, format!("{} needs the key {key}", self.kind));
            return None;
        }
        let text = self.string(key, errors)?;
        if text.value.trim().is_empty() {
            errors.push(text.offset, format!("{key} is empty"));
            return None;
        }
        Some(text)
    }

    pub(crate) fn strings(
        &self,
        key: &str,
        errors: &mut ValidationErrors,
    ) -> Option<Located<Vec<Located<String>>>> {
        let (span, value) = self.get(key)?;
        let DeValue::Array(array) = value else {
            return push_type_error(key, "a list of strings", value, span, errors);
        };
        let mut strings = Vec::new();
        for value in array.iter() {
            match value.get_ref() {
                DeValue::String(text) if !text.contains('\0') => {
                    strings.push(Located { offset: value.span().start, value: text.clone().into_owned() });
                }
                other => drop(push_type_error::<()>(key, "a list of strings", other, value.span(), errors)),
            }
        }
        Some(Located { offset: span.start, value: strings })
    }

    /// Reads a string or a list of strings.
    pub(crate) fn string_or_strings(
        &self,
        key: &str,
        errors: &mut ValidationErrors,
    ) -> Option<Located<StringOrList>> {
        if let Some((_, DeValue::Array(_))) = self.get(key) {
            let Located { offset, value } = self.strings(key, errors)?;
            let words = value.into_iter().map(|word| word.value).collect();
            return Some(Located { offset, value: StringOrList::List(words) });
        }
        let Located { offset, value } = self.text(key, "a string or a list of strings", errors)?;
        Some(Located { offset, value: StringOrList::String(value) })
    }

    /// Reads an integer from 0 to `i64::MAX`.
    pub(crate) fn count(&self, key: &str, errors: &mut ValidationErrors) -> Option<u64> {
        let (span, value) = self.get(key)?;
        let DeValue::Integer(number) = value else {
            return push_type_error(key, "a number", value, span, errors);
        };
        let integer = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let count = integer.and_then(|number| u64::try_from(number).ok());
        if count.is_none() {
            errors.push(span.start, format!("{key} takes a number from 0 to {}, not {number}", i64::MAX));
        }
        count
    }

    /// Reads a finite number that is at least 0, with or without a fraction.
    pub(crate) fn amount(&self, key: &str, errors: &mut ValidationErrors) -> Option<f64> {
        let (span, value) = self.get(key)?;
        let text = match value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return push_type_error(key, "an amount such as 2.50", other, span, errors),
        };
        let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
        if amount.is_none() {
            errors.push(span.start, format!("{key} takes an amount from 0 on, such as 2.50, not {text}"));
        }
        amount
    }

    /// Reads `true` (returned as `Some(None)`) or a string. `false` is treated as a missing key.
    pub(crate) fn bool_or_string(&self, key: &str, errors: &mut ValidationErrors) -> Option<Option<String>> {
        match self.get(key)?.1 {
            DeValue::Boolean(value) => value.then_some(None),
            _ => self.text(key, "true or a string", errors).map(|text| Some(text.value)),
        }
    }

    /// Reads a string and parses it. The error of `T` continues the sentence `KEY is …`.
    pub(crate) fn parsed<T: FromStr<Err = String>>(
        &self,
        key: &str,
        errors: &mut ValidationErrors,
    ) -> Option<T> {
        let text = self.string(key, errors)?;
        let push = |error| errors.push(text.offset, format!("{key} is {error}, not {:?}", text.value));
        text.value.parse().map_err(push).ok()
    }

    /// Reads a string that must be one of the names in `choices`, and returns the value of that
    /// choice.
    pub(crate) fn one_of<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        errors: &mut ValidationErrors,
    ) -> Option<T> {
        let text = self.string(key, errors)?;
        let choice = choices.iter().find(|(name, _)| *name == text.value);
        if choice.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            errors.push(text.offset, format!("{key} is one of {}, not {:?}", names.join(", "), text.value));
        }
        choice.map(|(_, value)| *value)
    }

    pub(crate) fn table(
        &self,
        key: &str,
        kind: &'static str,
        errors: &mut ValidationErrors,
    ) -> Option<TableReader<'a>> {
        let (span, value) = self.get(key)?;
        match value {
            DeValue::Table(table) => Some(TableReader::new(table, span.start, kind)),
            other => push_type_error(key, "a table", other, span, errors),
        }
    }

    /// Reads the tables `[key.NAME]`, in the order of their names.
    pub(crate) fn named_tables(
        &self,
        key: &str,
        kind: &'static str,
        errors: &mut ValidationErrors,
    ) -> Vec<(Located<String>, TableReader<'a>)> {
        let Some(parent) = self.table(key, kind, errors) else { return Vec::new() };
        let table = |name: &'a Spanned<std::borrow::Cow<'a, str>>, errors: &mut ValidationErrors| {
            let located = Located { offset: name.span().start, value: name.get_ref().clone().into_owned() };
            let mut table = parent.table(name.get_ref(), kind, errors)?;
            table.offset = located.offset;
            Some((located, table))
        };
        parent.table.keys().filter_map(|name| table(name, errors)).collect()
    }

    /// Reads the tables `[[key]]`. `None` if the value of the key has another type.
    pub(crate) fn tables(
        &self,
        key: &str,
        kind: &'static str,
        errors: &mut ValidationErrors,
    ) -> Option<Vec<TableReader<'a>>> {
        let Some((span, value)) = self.get(key) else { return Some(Vec::new()) };
        let DeValue::Array(array) = value else {
            let message =
                format!("{key} is written as [[{key}]], once for each; this is {}", toml_type_name(value));
            errors.push_missing(self.key_offset(key).unwrap_or(span.start), message);
            return None;
        };
        let table = |value: &'a Spanned<DeValue<'a>>, errors: &mut ValidationErrors| match value.get_ref() {
            DeValue::Table(table) => Some(TableReader::new(table, value.span().start, kind)),
            other => push_type_error(key, "a table", other, value.span(), errors),
        };
        Some(array.iter().filter_map(|value| table(value, errors)).collect())
    }

    /// Reads the names and values of a table that has only strings.
    pub(crate) fn string_pairs(&self, errors: &mut ValidationErrors) -> Vec<(Located<String>, String)> {
        let pair = |key: &Spanned<std::borrow::Cow<'_, str>>, errors: &mut ValidationErrors| {
            let value = self.string(key.get_ref(), errors)?.value;
            Some((Located { offset: key.span().start, value: key.get_ref().clone().into_owned() }, value))
        };
        self.table.keys().filter_map(|key| pair(key, errors)).collect()
    }

    /// Converts the table to JSON.
    pub(crate) fn json(&self, errors: &mut ValidationErrors) -> Map<String, Value> {
        object(self.table, errors)
    }
}

fn push_type_error<T>(
    key: &str,
    expected: &str,
    actual: &DeValue,
    span: Range<usize>,
    errors: &mut ValidationErrors,
) -> Option<T> {
    errors.push(span.start, format!("{key} takes {expected}, not {}", toml_type_name(actual)));
    None
}

fn toml_type_name(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn object(table: &DeTable, errors: &mut ValidationErrors) -> Map<String, Value> {
    let pair =
        |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue>),
         errors: &mut ValidationErrors| { (key.get_ref().clone().into_owned(), json(value, errors)) };
    table.iter().map(|entry| pair(entry, errors)).collect()
}

fn list(array: &DeArray, errors: &mut ValidationErrors) -> Value {
    array.iter().map(|value| json(value, errors)).collect()
}

/// Converts a value to JSON. A date becomes a string, because JSON has no dates.
fn json(value: &Spanned<DeValue>, errors: &mut ValidationErrors) -> Value {
    let offset = value.span().start;
    let number = |parsed: Option<Number>, errors: &mut ValidationErrors| {
        parsed.map_or_else(
            || {
                errors.push(offset, "this number does not fit into JSON");
                Value::Null
            },
            Value::Number,
        )
    };
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            let parsed = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            number(parsed.map(Number::from), errors)
        }
        DeValue::Float(float) => number(float.as_str().parse().ok().and_then(Number::from_f64), errors),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(array) => list(array, errors),
        DeValue::Table(table) => Value::Object(object(table, errors)),
    }
}
