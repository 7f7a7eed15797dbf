//! As much of JSON Schema as our schemas use, to be had wherever the tests run. A word that it does not know is a
//! panic, never a yes; tests/e2e has a validator that is not ours look at the same samples.

use serde_json::Value;

/// What `root`, a whole schema, has against a value.
pub(crate) fn fault(root: &Value, value: &Value) -> Option<String> {
    against(root, root, value)
}

fn against(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    match schema {
        Value::Bool(true) => None,
        Value::Bool(false) => Some(format!("there is {value}")),
        Value::Object(words) => {
            words.iter().find_map(|(word, said)| by_word(root, schema, word, said, value))
        }
        other => panic!("{other} is no schema of ours"),
    }
}

fn by_word(root: &Value, schema: &Value, word: &str, said: &Value, value: &Value) -> Option<String> {
    let fits = |schema: &&Value| against(root, schema, value).is_none();
    let all = |said: &Value| said.as_array().unwrap().iter().filter(fits).count();
    let is_right = match word {
        "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "format" => true,
        "type" => is_of_type(said, value),
        "const" => said == value,
        "enum" => said.as_array().unwrap().contains(value),
        "oneOf" => all(said) == 1,
        "anyOf" => all(said) > 0,
        "minimum" => value.as_f64().is_none_or(|number| number >= said.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= said.as_f64().unwrap()),
        "minLength" => length(value).is_none_or(|length| length >= said.as_u64().unwrap()),
        "maxLength" => length(value).is_none_or(|length| length <= said.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|all| all.len() as u64 >= said.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|all| all.len() as u64 <= said.as_u64().unwrap()),
        "pattern" => value.as_str().is_none_or(|text| matches(said.as_str().unwrap(), text)),
        "required" => value.as_object().is_none_or(|object| {
            said.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        _ => return by_part(root, schema, word, said, value),
    };
    (!is_right).then(|| format!("{word} is {said}, but there is {value}"))
}

/// The words that hand a part of the value, or all of it, to another schema.
fn by_part(root: &Value, schema: &Value, word: &str, said: &Value, value: &Value) -> Option<String> {
    let elements = || value.as_array().into_iter().flatten();
    let fields = || value.as_object().into_iter().flatten();
    match word {
        "$ref" => {
            let found = root.pointer(said.as_str().unwrap().strip_prefix('#').unwrap());
            against(root, found.unwrap(), value)
        }
        "items" => elements().find_map(|element| against(root, said, element)),
        "prefixItems" => {
            elements().zip(said.as_array().unwrap()).find_map(|(element, said)| against(root, said, element))
        }
        "properties" => fields().find_map(|(key, field)| against(root, said.get(key)?, field)),
        "additionalProperties" => fields()
            .filter(|(key, _)| schema["properties"].get(key.as_str()).is_none())
            .find_map(|(_, field)| against(root, said, field)),
        unknown => panic!("no test knows {unknown}"),
    }
}

fn is_of_type(said: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        unknown => panic!("no test knows {unknown}"),
    };
    said.as_array().map_or_else(|| is(said), |names| names.iter().any(is))
}

fn length(value: &Value) -> Option<u64> {
    Some(value.as_str()?.chars().count() as u64)
}

fn matches(pattern: &str, text: &str) -> bool {
    regex_lite::Regex::new(pattern).unwrap().is_match(text)
}
