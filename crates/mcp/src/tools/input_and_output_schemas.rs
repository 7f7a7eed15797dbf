//! JSON schemas of the tools, in a form that all clients accept: one flat object with properties of
//! plain types. A client may leave out an optional property. The schema does not list null as a
//! value, but a null that a client passes is accepted and ignored.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The arguments of a tool that takes none.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoInput {}

/// A property of a tool's result.
pub(super) struct Property {
    /// The key.
    pub(super) name: &'static str,
    /// The type: `string`, `boolean`, `object`, `array` or `integer`.
    pub(super) json_type: &'static str,
    /// Whether every result has it.
    pub(super) required: bool,
}

/// A property that every result has.
pub(super) const fn required_property(name: &'static str, json_type: &'static str) -> Property {
    Property { name, json_type, required: true }
}

/// A property that some results have.
pub(super) const fn optional_property(name: &'static str, json_type: &'static str) -> Property {
    Property { name, json_type, required: false }
}

/// The schema of a tool's arguments.
pub(super) fn input_schema<T: JsonSchema>() -> JsonObject {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let Value::Object(mut schema) = Value::from(schema) else { return JsonObject::new() };
    for key in ["$schema", "title", "description"] {
        schema.shift_remove(key);
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(simplify_property);
    }
    schema
}

/// Removes from a property's schema what only some clients understand.
fn simplify_property(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    for key in ["default", "format", "additionalProperties"] {
        property.shift_remove(key);
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            property["type"] = only.clone();
        }
    }
    if let Some(items) = property.get_mut("items") {
        simplify_property(items);
    }
}

/// The schema of a tool's result.
pub(super) fn output_schema(properties: &[Property]) -> JsonObject {
    let types =
        properties.iter().map(|property| (property.name.to_owned(), json!({"type": property.json_type})));
    let required =
        properties.iter().filter(|property| property.required).map(|property| json!(property.name));
    let schema = [
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(types.collect())),
        ("required".to_owned(), required.collect()),
    ];
    schema.into_iter().collect()
}

/// Parses the arguments of a tool. The error names the tool.
pub(super) fn parse_arguments<T: DeserializeOwned>(
    tool: &str,
    mut arguments: JsonObject,
) -> Result<T, ErrorReport> {
    arguments.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot call {tool}: {error}"))
            .with_help("look at the tool's schema, and call it again")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    struct Sample {
        /// The name.
        name: String,
        /// The number.
        #[serde(default)]
        count: Option<u32>,
        #[serde(default)]
        words: Option<Vec<String>>,
    }

    #[test]
    fn optional_properties_are_not_required() {
        let schema = Value::Object(input_schema::<Sample>());
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(schema["properties"]["name"], json!({"type": "string", "description": "The name."}));
        assert_eq!(schema["properties"]["count"]["type"], json!("integer"));
        assert_eq!(schema["properties"]["words"], json!({"type": "array", "items": {"type": "string"}}));
    }

    #[test]
    fn null_is_ignored_and_type_errors_name_the_tool() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let parse = |value| parse_arguments::<Sample>("Sample", object(value));
        let sample = parse(json!({"name": "x", "count": null})).unwrap();
        assert_eq!((sample.name.as_str(), sample.count, sample.words), ("x", None, None));
        let error = parse(json!({"name": 7})).unwrap_err();
        assert!(error.message.starts_with("cannot call Sample: invalid type"), "{error:?}");
        assert!(parse(json!({})).unwrap_err().message.contains("missing field `name`"));
    }
}
