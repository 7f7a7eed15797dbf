//! Reads typed fields of an object.
//!
//! If a field has the wrong type, the error names the field and its value. Unless a method says
//! otherwise, null counts as a missing field.

use super::parse_slices::{Array, Object, clip, decode_string};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A known field that is missing or has the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field} should be {expected}, but is {found}")]
pub struct FieldError {
    /// The field's name, or a name for the whole value.
    pub field: String,
    /// The expected type.
    pub expected: &'static str,
    /// The beginning of the value, or `missing`.
    pub found: String,
}

impl FieldError {
    /// Creates the error for a field with a wrong value. `expected` describes a right value.
    /// `found` is the field's value, or `None` if the field is missing.
    pub fn new(field: &str, expected: &'static str, found: Option<&RawValue>) -> FieldError {
        let found = found.map_or_else(|| "missing".to_owned(), |value| clip(value.get()));
        FieldError { field: field.to_owned(), expected, found }
    }
}

impl<'a> Object<'a> {
    /// The string in the field `key`, which is required.
    pub fn string(&self, key: &str) -> Result<String, FieldError> {
        string_value(key, self.get(key))
    }

    /// The string in the field `key`. `None` if the field is missing or null.
    pub fn optional_string(&self, key: &str) -> Result<Option<String>, FieldError> {
        self.non_null(key).map(|value| string_value(key, Some(value))).transpose()
    }

    /// The boolean in the field `key`. `None` if the field is missing. Null is an error.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, FieldError> {
        self.get(key).map(|_| self.parse_field(key, "true or false")).transpose()
    }

    /// The boolean in the field `key`. `None` if the field is missing or null.
    pub fn optional_boolean(&self, key: &str) -> Result<Option<bool>, FieldError> {
        self.non_null(key).map(|_| self.parse_field(key, "true or false")).transpose()
    }

    /// The non-negative whole number in the field `key`. `None` if the field is missing or null.
    pub fn optional_integer(&self, key: &str) -> Result<Option<u64>, FieldError> {
        self.non_null(key).map(|value| self.integer(key, value)).transpose()
    }

    /// The array of strings in the field `key`. Empty if the field is missing or null.
    pub fn strings(&self, key: &str) -> Result<Vec<String>, FieldError> {
        let expected = "an array of strings";
        let Some(value) = self.non_null(key) else { return Ok(Vec::new()) };
        let array =
            Array::from_raw(value.get(), value).map_err(|_| FieldError::new(key, expected, Some(value)))?;
        let texts: Option<Vec<String>> =
            array.elements().iter().map(|element| decode_string(element)).collect();
        texts.ok_or_else(|| FieldError::new(key, expected, Some(value)))
    }

    /// The value of `key`. `None` if the field is missing or null.
    pub fn non_null(&self, key: &str) -> Option<&'a RawValue> {
        self.get(key).filter(|value| value.get() != "null")
    }

    /// Parses a non-negative number and cuts off its fraction. The number can have an exponent,
    /// because JavaScript may write a whole number as `1.77e12`.
    fn integer(&self, key: &str, value: &RawValue) -> Result<u64, FieldError> {
        let exact = serde_json::from_str(value.get()).ok();
        let rounded = || serde_json::from_str::<f64>(value.get()).ok().filter(|n| (0.0..9e15).contains(n));
        let number = exact.or_else(|| rounded().map(|n| n as u64));
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
    fn keys_are_compared_after_decoding() {
        let object = Object::parse(r#"{"a\nb":1,"\u0063":2,"d\\n":3,"é":4}"#).unwrap();
        let found = |key: &str| object.get(key).map(|value| value.get());
        assert_eq!(found("a\nb"), Some("1"));
        assert_eq!(found(r"a\nb"), None, "an escape sequence and its letters are different keys");
        assert_eq!((found("c"), found(r"d\n"), found("é")), (Some("2"), Some("3"), Some("4")));
        assert_eq!((found(""), found("e"), found(r"\u0063")), (None, None, None));
    }

    #[test]
    fn error_names_field_and_value() {
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
