//! JSON text, looked into and edited without touching what is not meant.
//!
//! The text is the truth: objects and arrays are lists of slices borrowed from it, an [`Edit`] replaces a
//! range of its bytes, and whatever no edit names stays byte for byte: number spellings, duplicate keys,
//! lone surrogates, nesting of any depth, a byte order mark. Of duplicate keys the last counts.

mod document;
mod edit;
mod field;

pub use document::{Array, JsonError, Object, decode_string, parse_first, replace_lone_surrogates, to_value};
pub use edit::{Edit, apply_edits};
pub use field::FieldError;

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
    fn of_duplicate_keys_the_last_counts_and_odd_keys_do_not_disturb() {
        let object = Object::parse(r#"{"\ud83e":0,"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a").unwrap().get(), "2");
        assert_eq!(object.get("b").map(RawValue::get), None);
    }

    #[test]
    fn a_wrong_shape_is_named() {
        let error = Array::parse("{}").unwrap_err();
        assert_eq!(error.to_string(), "it should be an array, but is {}");
        assert!(matches!(Array::parse("[]\n[]"), Err(JsonError::Syntax(_))));
        assert!(matches!(Array::parse(""), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn depth_is_no_matter_up_to_a_thousand_and_damage_beyond() {
        let nested = |levels: usize| format!("{}\"[\\\"[\"{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(Array::parse(&nested(1000)).unwrap().elements().len(), 1);
        assert!(matches!(Array::parse(&nested(1001)), Err(JsonError::TooDeep)));
        assert!(matches!(Array::parse(&nested(500_000)), Err(JsonError::TooDeep)));
        let object = |levels: usize| format!("{{\"a\":{}}}", nested(levels));
        assert!(Object::parse(&object(999)).is_ok());
        assert!(matches!(Object::parse(&object(1000)), Err(JsonError::TooDeep)));
        let wide = format!("{{\"a\":[{}]}}", vec!["[{}]"; 2000].join(","));
        assert!(Object::parse(&wide).is_ok(), "many brackets beside one another");
    }
}
