//! Schemas that every program takes: one flat object of plain types. What is optional is left out, never null, though
//! a null that comes all the same is taken for "left out".

use protocol::error::{ErrorKind, ErrorReport};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A property of a result.
pub(super) struct Property {
    /// Its key.
    pub(super) name: &'static str,
    /// `string`, `boolean`, `object`, `array`, `integer`.
    pub(super) json_type: &'static str,
    /// Whether every result has it.
    pub(super) required: bool,
}

/// One that every result has.
pub(super) const fn required_property(name: &'static str, is: &'static str) -> Property {
    Property { name, json_type: is, required: true }
}

/// One that some results have.
pub(super) const fn optional_property(name: &'static str, is: &'static str) -> Property {
    Property { name, json_type: is, required: false }
}

/// Of a tool's arguments.
pub(super) fn input_schema<T: JsonSchema>() -> JsonObject {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let Value::Object(mut schema) = Value::from(schema) else { return JsonObject::new() };
    for word in ["$schema", "title", "description"] {
        schema.shift_remove(word);
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(simplify_property);
    }
    schema
}

/// Without what only some programs understand.
fn simplify_property(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    for word in ["default", "format", "additionalProperties"] {
        property.shift_remove(word);
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|is| is != "null");
        if let [only] = types.as_slice() {
            property["type"] = only.clone();
        }
    }
    if let Some(items) = property.get_mut("items") {
        simplify_property(items);
    }
}

/// Of a tool's result.
pub(super) fn output_schema(properties: &[Property]) -> JsonObject {
    let named =
        properties.iter().map(|property| (property.name.to_owned(), json!({"type": property.json_type})));
    let needed = properties.iter().filter(|property| property.required).map(|property| json!(property.name));
    let schema = [
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(named.collect())),
        ("required".to_owned(), needed.collect()),
    ];
    schema.into_iter().collect()
}

/// The arguments, or what is wrong with them.
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
        /// Which.
        name: String,
        /// How many.
        #[serde(default)]
        count: Option<u32>,
        #[serde(default)]
        words: Option<Vec<String>>,
    }

    #[test]
    fn optional_properties_are_not_required() {
        let schema = Value::Object(input_schema::<Sample>());
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(schema["properties"]["name"], json!({"type": "string", "description": "Which."}));
        assert_eq!(schema["properties"]["count"]["type"], json!("integer"));
        assert_eq!(schema["properties"]["words"], json!({"type": "array", "items": {"type": "string"}}));
    }

    #[test]
    fn null_is_ignored_and_type_errors_name_the_tool() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let read = |value| parse_arguments::<Sample>("Sample", object(value));
        let sample = read(json!({"name": "x", "count": null})).unwrap();
        assert_eq!((sample.name.as_str(), sample.count, sample.words), ("x", None, None));
        let fault = read(json!({"name": 7})).unwrap_err();
        assert!(fault.message.starts_with("cannot call Sample: invalid type"), "{fault:?}");
        assert!(read(json!({})).unwrap_err().message.contains("missing field `name`"));
    }
}
