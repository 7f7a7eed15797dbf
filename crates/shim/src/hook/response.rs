//! Writes the answers of hooks, in the format that the program expects.

use super::event_input::HookInput;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::{Map, Value, json};
use std::io::Write;

/// The answer of a turn-end hook that continues the session with `text`.
pub(super) fn continue_response(text: &str, template: &Map<String, Value>) -> String {
    fill_object(template, text).to_string()
}

fn fill_text(template: &Value, text: &str) -> Value {
    match template {
        Value::String(string) => Value::String(string.replace("{text}", text)),
        Value::Array(elements) => elements.iter().map(|element| fill_text(element, text)).collect(),
        Value::Object(fields) => fill_object(fields, text),
        other => other.clone(),
    }
}

fn fill_object(fields: &Map<String, Value>, text: &str) -> Value {
    Value::Object(fields.iter().map(|(key, value)| (key.clone(), fill_text(value, text))).collect())
}

/// The response that refuses a tool. The format of the response depends on the program. The program
/// is recognized by the name that it gives to the event.
pub(super) fn deny_tool_response(input: &HookInput, reason: &str) -> String {
    let response = match input.event.as_deref() {
        Some("BeforeTool") => json!({"decision": "deny", "reason": reason}),
        None => json!({"permissionDecision": "deny", "permissionDecisionReason": reason}),
        Some(event) => json!({"hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
    };
    response.to_string()
}

/// Writes a response of the hook to standard output.
///
/// # Errors
///
/// `Io` if the program does not read the response. Nothing was delivered then.
pub(super) fn write_response(text: &str) -> Result<(), ErrorReport> {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot write the answer: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_inserted_into_every_string_of_the_template_and_escaped() {
        let default_template = profile::HookDelivery::default().response_template;
        let text = "a \"b\"\n{text}";
        assert_eq!(
            continue_response(text, &default_template),
            r#"{"decision":"block","reason":"a \"b\"\n{text}"}"#
        );
        let template = json!({"hookSpecificOutput": {"more": ["say: {text}", 7]}});
        let template = template.as_object().unwrap();
        assert_eq!(continue_response("hi", template), r#"{"hookSpecificOutput":{"more":["say: hi",7]}}"#);
    }
}
