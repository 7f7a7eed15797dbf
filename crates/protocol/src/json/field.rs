//! Typed looks into one field of an object. A field may be missing, which is the reader's to judge; one of
//! an unexpected type is a fault that names field and value, and null is a missing one unless said otherwise.

use super::document::{Array, Object, clip, decode_string};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A known field that is missing or of an unexpected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field} should be {expected}, but is {found}")]
pub struct FieldError {
    /// The field's name, or what stands for the whole.
    pub field: String,
    /// What it should be.
    pub expected: &'static str,
    /// The value found, cut short, or `missing`.
    pub found: String,
}

impl FieldError {
    /// The fault of `field` having `found` (none: missing) where `expected` should be.
    pub fn new(field: &str, expected: &'static str, found: Option<&RawValue>) -> FieldError {
        let found = found.map_or_else(|| "missing".to_owned(), |value| clip(value.get()));
        FieldError { field: field.to_owned(), expected, found }
    }
}

impl<'a> Object<'a> {
    /// A string that must be there.
    pub fn string(&self, key: &str) -> Result<String, FieldError> {
        string_value(key, self.get(key))
    }

    /// A string that may be missing or null.
    pub fn optional_string(&self, key: &str) -> Result<Option<String>, FieldError> {
        self.non_null(key).map(|value| string_value(key, Some(value))).transpose()
    }

    /// True or false; none if missing. Null is a fault: it is neither.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, FieldError> {
        self.get(key).map(|_| self.parse_field(key, "true or false")).transpose()
    }

    /// True or false; none if missing or null.
    pub fn optional_boolean(&self, key: &str) -> Result<Option<bool>, FieldError> {
        self.non_null(key).map(|_| self.parse_field(key, "true or false")).transpose()
    }

    /// A whole number of milliseconds or the like; none if missing or null.
    pub fn optional_integer(&self, key: &str) -> Result<Option<u64>, FieldError> {
        self.non_null(key).map(|value| self.integer(key, value)).transpose()
    }

    /// The strings of an array; none are there if it is missing or null.
    pub fn strings(&self, key: &str) -> Result<Vec<String>, FieldError> {
        let expected = "an array of strings";
        let Some(value) = self.non_null(key) else { return Ok(Vec::new()) };
        let array =
            Array::from_raw(value.get(), value).map_err(|_| FieldError::new(key, expected, Some(value)))?;
        let texts: Option<Vec<String>> =
            array.elements().iter().map(|element| decode_string(element)).collect();
        texts.ok_or_else(|| FieldError::new(key, expected, Some(value)))
    }

    /// The value under `key` unless it is null.
    pub fn non_null(&self, key: &str) -> Option<&'a RawValue> {
        self.get(key).filter(|value| value.get() != "null")
    }

    /// JavaScript writers may spell a whole number as 1.77e12 or with a fraction of a millisecond.
    fn integer(&self, key: &str, value: &RawValue) -> Result<u64, FieldError> {
        let whole = serde_json::from_str(value.get()).ok();
        let rounded = || serde_json::from_str::<f64>(value.get()).ok().filter(|n| (0.0..9e15).contains(n));
        let number = whole.or_else(|| rounded().map(|n| n as u64));
        number.ok_or_else(|| FieldError::new(key, "a whole number", Some(value)))
    }

    fn parse_field<T: DeserializeOwned>(&self, key: &str, expected: &'static str) -> Result<T, FieldError> {
        let value = self.get(key);
        let parsed = value.and_then(|value| serde_json::from_str(value.get()).ok());
        parsed.ok_or_else(|| FieldError::new(key, expected, value))
    }
}

fn string_value(key: &str, value: Option<&RawValue>) -> Result<String, FieldError> {
    value.and_then(decode_string).ok_or_else(|| FieldError::new(key, "a string", value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_what_it_says_however_it_is_spelled() {
        let object = Object::parse(r#"{"a\nb":1,"\u0063":2,"d\\n":3,"é":4}"#).unwrap();
        let found = |key: &str| object.get(key).map(|value| value.get());
        assert_eq!(found("a\nb"), Some("1"));
        assert_eq!(found(r"a\nb"), None, "another key of the same letters");
        assert_eq!((found("c"), found(r"d\n"), found("é")), (Some("2"), Some("3"), Some("4")));
        assert_eq!((found(""), found("e"), found(r"\u0063")), (None, None, None));
    }

    #[test]
    fn a_fault_names_field_and_value() {
        let object = Object::parse(r#"{"a":1,"b":null,"c":["x",2],"d":1.0,"e":-1}"#).unwrap();
        assert_eq!(object.string("a").unwrap_err().to_string(), "field a should be a string, but is 1");
        assert_eq!(object.string("z").unwrap_err().to_string(), "field z should be a string, but is missing");
        assert_eq!(object.optional_string("b").unwrap(), None);
        assert!(object.boolean("b").is_err());
        assert!(object.strings("c").is_err());
        assert_eq!(object.optional_integer("d").unwrap(), Some(1));
        assert!(object.optional_integer("e").is_err());
    }
}
