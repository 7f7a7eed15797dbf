//! A validator for the part of JSON Schema that docs/schema uses. It needs no other program, so it
//! runs wherever the tests run. It panics on an unknown keyword. tests/e2e checks the same samples
//! with an independent validator.

use serde_json::Value;

/// Validates `value` by the schema `root`. Returns the first violation. `None` if the value is
/// valid.
pub(crate) fn validation_error(root: &Value, value: &Value) -> Option<String> {
    check_schema(root, root, value)
}

fn check_schema(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    match schema {
        Value::Bool(true) => None,
        Value::Bool(false) => Some(format!("no value is allowed, but the value is {value}")),
        Value::Object(keywords) => keywords
            .iter()
            .find_map(|(keyword, argument)| check_keyword(root, schema, keyword, argument, value)),
        other => panic!("{other} is not a schema"),
    }
}

fn check_keyword(
    root: &Value,
    schema: &Value,
    keyword: &str,
    argument: &Value,
    value: &Value,
) -> Option<String> {
    let is_valid = |schema: &&Value| check_schema(root, schema, value).is_none();
    let valid_count = |schemas: &Value| schemas.as_array().unwrap().iter().filter(is_valid).count();
    let is_valid = match keyword {
        "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "format" => true,
        "type" => is_of_type(argument, value),
        "const" => argument == value,
        "enum" => argument.as_array().unwrap().contains(value),
        "oneOf" => valid_count(argument) == 1,
        "anyOf" => valid_count(argument) > 0,
        "minimum" => value.as_f64().is_none_or(|number| number >= argument.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= argument.as_f64().unwrap()),
        "minLength" => length(value).is_none_or(|length| length >= argument.as_u64().unwrap()),
        "maxLength" => length(value).is_none_or(|length| length <= argument.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|all| all.len() as u64 >= argument.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|all| all.len() as u64 <= argument.as_u64().unwrap()),
        "pattern" => value.as_str().is_none_or(|text| matches(argument.as_str().unwrap(), text)),
        "required" => value.as_object().is_none_or(|object| {
            argument.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        _ => return check_applicator(root, schema, keyword, argument, value),
    };
    (!is_valid).then(|| format!("{keyword} is {argument}, but the value is {value}"))
}

/// Checks the keywords that apply another schema to the value or to a part of it.
fn check_applicator(
    root: &Value,
    schema: &Value,
    keyword: &str,
    argument: &Value,
    value: &Value,
) -> Option<String> {
    let elements = || value.as_array().into_iter().flatten();
    let fields = || value.as_object().into_iter().flatten();
    match keyword {
        "$ref" => {
            let target = root.pointer(argument.as_str().unwrap().strip_prefix('#').unwrap());
            check_schema(root, target.unwrap(), value)
        }
        "items" => elements().find_map(|element| check_schema(root, argument, element)),
        "prefixItems" => elements()
            .zip(argument.as_array().unwrap())
            .find_map(|(element, schema)| check_schema(root, schema, element)),
        "properties" => fields().find_map(|(key, field)| check_schema(root, argument.get(key)?, field)),
        "additionalProperties" => fields()
            .filter(|(key, _)| schema["properties"].get(key.as_str()).is_none())
            .find_map(|(_, field)| check_schema(root, argument, field)),
        unknown => panic!("unknown keyword {unknown}"),
    }
}

fn is_of_type(names: &Value, value: &Value) -> bool {
    let has_type = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        unknown => panic!("unknown type {unknown}"),
    };
    names.as_array().map_or_else(|| has_type(names), |names| names.iter().any(has_type))
}

fn length(value: &Value) -> Option<u64> {
    Some(value.as_str()?.chars().count() as u64)
}

fn matches(pattern: &str, text: &str) -> bool {
    regex_lite::Regex::new(pattern).unwrap().is_match(text)
}
