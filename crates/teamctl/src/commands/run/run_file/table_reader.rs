//! A table of the file, looked into by key: what is of the wrong type or unknown is a flaw, and is left out.

use super::validation_error::{Located, ValidationErrors, nearest_help};
use serde_json::{Map, Number, Value};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// One table.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableReader<'a> {
    table: &'a DeTable<'a>,
    /// Where it begins.
    pub(super) at: usize,
    /// What it is: `a member`.
    what: &'static str,
}

impl<'a> TableReader<'a> {
    pub(super) fn new(table: &'a DeTable<'a>, at: usize, what: &'static str) -> TableReader<'a> {
        TableReader { table, at, what }
    }

    /// Every key that is not one of these is a flaw.
    pub(super) fn check_keys(&self, known: &[&str], flaws: &mut ValidationErrors) {
        for key in self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let message = format!("{} takes no key {name:?}{}", self.what, nearest_help(name, known));
            flaws.push(key.span().start, message);
        }
    }

    /// Where the key stands, if it does.
    pub(super) fn key_offset(&self, key: &str) -> Option<usize> {
        self.table.get_key_value(key).map(|(key, _)| key.span().start)
    }

    fn get(&self, key: &str) -> Option<(Range<usize>, &'a DeValue<'a>)> {
        self.table.get(key).map(|value| (value.span(), value.get_ref()))
    }

    pub(super) fn string(&self, key: &str, flaws: &mut ValidationErrors) -> Option<Located<String>> {
        self.text(key, "a string", flaws)
    }

    /// A string that is called `wanted` where something else stands there.
    pub(super) fn text(
        &self,
        key: &str,
        wanted: &str,
        flaws: &mut ValidationErrors,
    ) -> Option<Located<String>> {
        let (span, value) = self.get(key)?;
        match value {
            DeValue::String(text) if text.contains('\0') => {
                flaws.push(span.start, format!("{key} holds a NUL, which nothing can be called with"));
                None
            }
            DeValue::String(text) => Some(Located { at: span.start, value: text.clone().into_owned() }),
            other => push_type_error(key, wanted, other, span, flaws),
        }
    }

    /// One that has to be there, and not empty.
    pub(super) fn required_string(&self, key: &str, flaws: &mut ValidationErrors) -> Option<Located<String>> {
        if self.get(key).is_none() {
            flaws.push_missing(self.at, format!("{} needs the key {key}", self.what));
            return None;
        }
        let found = self.string(key, flaws)?;
        if found.value.trim().is_empty() {
            flaws.push(found.at, format!("{key} is empty"));
            return None;
        }
        Some(found)
    }

    pub(super) fn strings(
        &self,
        key: &str,
        flaws: &mut ValidationErrors,
    ) -> Option<Located<Vec<Located<String>>>> {
        let (span, value) = self.get(key)?;
        let DeValue::Array(array) = value else {
            return push_type_error(key, "a list of strings", value, span, flaws);
        };
        let mut strings = Vec::new();
        for value in array.iter() {
            match value.get_ref() {
                DeValue::String(text) if !text.contains('\0') => {
                    strings.push(Located { at: value.span().start, value: text.clone().into_owned() });
                }
                other => drop(push_type_error::<()>(key, "a list of strings", other, value.span(), flaws)),
            }
        }
        Some(Located { at: span.start, value: strings })
    }

    /// A number from 0, as far as numbers go in TOML.
    pub(super) fn count(&self, key: &str, flaws: &mut ValidationErrors) -> Option<u64> {
        let (span, value) = self.get(key)?;
        let DeValue::Integer(number) = value else {
            return push_type_error(key, "a number", value, span, flaws);
        };
        let found = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let count = found.and_then(|number| u64::try_from(number).ok());
        if count.is_none() {
            flaws.push(span.start, format!("{key} takes a number from 0 to {}, not {number}", i64::MAX));
        }
        count
    }

    /// A number from 0, perhaps with a fraction.
    pub(super) fn amount(&self, key: &str, flaws: &mut ValidationErrors) -> Option<f64> {
        let (span, value) = self.get(key)?;
        let text = match value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return push_type_error(key, "an amount such as 2.50", other, span, flaws),
        };
        let found = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
        if found.is_none() {
            flaws.push(span.start, format!("{key} takes an amount from 0 on, such as 2.50, not {text}"));
        }
        found
    }

    /// `true`, or a text; `false` is as if nothing stood there.
    pub(super) fn bool_or_string(&self, key: &str, flaws: &mut ValidationErrors) -> Option<Option<String>> {
        match self.get(key)?.1 {
            DeValue::Boolean(yes) => yes.then_some(None),
            _ => self.text(key, "true or a string", flaws).map(|text| Some(text.value)),
        }
    }

    /// One word of several.
    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        flaws: &mut ValidationErrors,
    ) -> Option<T> {
        let found = self.string(key, flaws)?;
        let meant = words.iter().find(|(word, _)| *word == found.value);
        if meant.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            flaws.push(found.at, format!("{key} is one of {}, not {:?}", all.join(", "), found.value));
        }
        meant.map(|(_, value)| *value)
    }

    pub(super) fn table(
        &self,
        key: &str,
        what: &'static str,
        flaws: &mut ValidationErrors,
    ) -> Option<TableReader<'a>> {
        let (span, value) = self.get(key)?;
        match value {
            DeValue::Table(table) => Some(TableReader::new(table, span.start, what)),
            other => push_type_error(key, "a table", other, span, flaws),
        }
    }

    /// The tables of `[[key]]`; none where it is written in another way.
    pub(super) fn tables(
        &self,
        key: &str,
        what: &'static str,
        flaws: &mut ValidationErrors,
    ) -> Option<Vec<TableReader<'a>>> {
        let Some((span, value)) = self.get(key) else { return Some(Vec::new()) };
        let DeValue::Array(array) = value else {
            let message =
                format!("{key} is written as [[{key}]], once for each; this is {}", toml_type_name(value));
            flaws.push_missing(self.key_offset(key).unwrap_or(span.start), message);
            return None;
        };
        let table = |value: &'a Spanned<DeValue<'a>>, flaws: &mut ValidationErrors| match value.get_ref() {
            DeValue::Table(table) => Some(TableReader::new(table, value.span().start, what)),
            other => push_type_error(key, "a table", other, value.span(), flaws),
        };
        Some(array.iter().filter_map(|value| table(value, flaws)).collect())
    }

    /// Name and text of each.
    pub(super) fn string_pairs(&self, flaws: &mut ValidationErrors) -> Vec<(Located<String>, String)> {
        let pair = |key: &Spanned<std::borrow::Cow<'_, str>>, flaws: &mut ValidationErrors| {
            let value = self.string(key.get_ref(), flaws)?.value;
            Some((Located { at: key.span().start, value: key.get_ref().clone().into_owned() }, value))
        };
        self.table.keys().filter_map(|key| pair(key, flaws)).collect()
    }

    /// The table as JSON.
    pub(super) fn json(&self, flaws: &mut ValidationErrors) -> Map<String, Value> {
        object(self.table, flaws)
    }
}

fn push_type_error<T>(
    key: &str,
    wanted: &str,
    found: &DeValue,
    span: Range<usize>,
    flaws: &mut ValidationErrors,
) -> Option<T> {
    flaws.push(span.start, format!("{key} takes {wanted}, not {}", toml_type_name(found)));
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

fn object(table: &DeTable, flaws: &mut ValidationErrors) -> Map<String, Value> {
    let pair =
        |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue>),
         flaws: &mut ValidationErrors| { (key.get_ref().clone().into_owned(), json(value, flaws)) };
    table.iter().map(|entry| pair(entry, flaws)).collect()
}

fn list(array: &DeArray, flaws: &mut ValidationErrors) -> Value {
    array.iter().map(|value| json(value, flaws)).collect()
}

/// A date becomes its text; JSON has none.
fn json(value: &Spanned<DeValue>, flaws: &mut ValidationErrors) -> Value {
    let at = value.span().start;
    let number = |found: Option<Number>, flaws: &mut ValidationErrors| {
        found.map_or_else(
            || {
                flaws.push(at, "this number does not fit into JSON");
                Value::Null
            },
            Value::Number,
        )
    };
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            let parsed = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            number(parsed.map(Number::from), flaws)
        }
        DeValue::Float(float) => number(float.as_str().parse().ok().and_then(Number::from_f64), flaws),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(array) => list(array, flaws),
        DeValue::Table(table) => Value::Object(object(table, flaws)),
    }
}
