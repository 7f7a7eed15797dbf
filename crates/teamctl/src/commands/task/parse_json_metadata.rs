//! Parses the value of `--metadata`.

use serde_json::{Map, Value};

/// Parses a JSON object. For clap's `value_parser`.
pub(super) fn parse_metadata(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("cannot read it as a JSON object: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_must_be_an_object() {
        assert_eq!(parse_metadata(r#"{"a":1}"#).map(|metadata| metadata.len()), Ok(1));
        assert!(
            parse_metadata("[1]").is_err() && parse_metadata("null").is_err() && parse_metadata("{").is_err()
        );
    }
}
