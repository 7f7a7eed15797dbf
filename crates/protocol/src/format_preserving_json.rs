//! Reads and edits JSON text without changing the parts that an edit does not name.
//!
//! Objects and arrays are lists of slices of the text. An [`Edit`] replaces a range of the text's
//! bytes. All other bytes stay the same, so numbers keep their spelling, and duplicate keys, lone
//! surrogates and a byte order mark remain. If a key occurs more than once in an object, the last
//! value counts. Text that is nested deeper than 1000 levels is an error.

mod edit;
mod parse_slices;
mod typed_fields;

pub use edit::{Edit, apply_edits};
pub use parse_slices::{
    Array, JsonError, Object, decode_string, parse_first, replace_lone_surrogates, to_value,
};
pub use typed_fields::FieldError;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn lone_surrogates_are_read_as_replacement() {
        for (json, text) in [
            (r#""cut \ud83e""#, "cut \u{fffd}"),
            (r#""\ud83e\uDD5A""#, "🥚"),
            (r#""\udd5a\ud83e""#, "\u{fffd}\u{fffd}"),
            (r#""\\ud83e""#, "\\ud83e"),
            (r#""\\\ud83e!""#, "\\\u{fffd}!"),
        ] {
            assert_eq!(decode_string(&RawValue::from_string(json.to_owned()).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn last_duplicate_key_counts_and_undecodable_keys_are_ignored() {
        let object = Object::parse(r#"{"\ud83e":0,"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a").unwrap().get(), "2");
        assert_eq!(object.get("b").map(RawValue::get), None);
    }

    #[test]
    fn wrong_type_is_named() {
        let error = Array::parse("{}").unwrap_err();
        assert_eq!(error.to_string(), "it should be an array, but is {}");
        assert!(matches!(Array::parse("[]\n[]"), Err(JsonError::Syntax(_))));
        assert!(matches!(Array::parse(""), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn nesting_is_limited_to_1000_levels() {
        let nested = |levels: usize| format!("{}\"[\\\"[\"{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(Array::parse(&nested(1000)).unwrap().elements().len(), 1);
        assert!(matches!(Array::parse(&nested(1001)), Err(JsonError::TooDeep)));
        assert!(matches!(Array::parse(&nested(500_000)), Err(JsonError::TooDeep)));
        let object = |levels: usize| format!("{{\"a\":{}}}", nested(levels));
        assert!(Object::parse(&object(999)).is_ok());
        assert!(matches!(Object::parse(&object(1000)), Err(JsonError::TooDeep)));
        let wide = format!("{{\"a\":[{}]}}", vec!["[{}]"; 2000].join(","));
        assert!(Object::parse(&wide).is_ok(), "brackets side by side are one level");
    }
}
