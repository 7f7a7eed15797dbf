//! Converts an agent's permission question into a permission request to the lead, and converts the
//! lead's answer into an answer for the agent. The functions are pure.

use protocol::acp_driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::check_program_supports_answer::is_changed_input;
use protocol::inbox_message_payload::{
    Payload, PermissionGrant, PermissionOutcome, PermissionRequest, PermissionRule, PermissionUpdate,
};
use protocol::member_task_and_request_ids::{RequestId, UniqueMillis};
use protocol::policy::is_text_key;
use serde_json::Value;
use store::MESSAGE_LIMIT;
use store::now;
use uuid::Uuid;

/// Makes the ids of permission requests unique, even within one millisecond.
static REQUEST_IDS: UniqueMillis = UniqueMillis::new();

/// The lengths to which long texts are shortened, in bytes. They are tried in this order until the
/// request fits into a message.
const TEXT_LIMITS: [usize; 3] = [16 << 10, 2 << 10, 256];

/// A permission request that has no answer yet.
#[derive(Debug)]
pub(super) struct OpenPermissionRequest {
    pub(super) question_id: u64,
    pub(super) request: PermissionRequest,
    /// Whether the request was written to the lead's inbox.
    pub(super) is_sent: bool,
}

impl OpenPermissionRequest {
    pub(super) fn new(question: PermissionQuestion, member: &str) -> OpenPermissionRequest {
        let (suffix, _) = Uuid::new_v4().as_u64_pair();
        let rule = PermissionRule { tool_name: question.tool_name.clone(), rule_content: None };
        let allow_always = PermissionUpdate::AddRules {
            rules: vec![rule],
            behavior: "allow".to_owned(),
            destination: "session".to_owned(),
        };
        let request = PermissionRequest {
            request_id: RequestId::permission(REQUEST_IDS.next(now()), suffix),
            agent_id: member.to_owned(),
            tool_name: question.tool_name,
            tool_use_id: question.call_id,
            description: question.title,
            input: question.input,
            permission_suggestions: if question.can_allow_always { vec![allow_always] } else { Vec::new() },
        };
        OpenPermissionRequest { question_id: question.id, request, is_sent: false }
    }

    /// Shortens the request so that it fits into a message. `None` if that is not possible.
    ///
    /// Only the description and the texts that the tool would write to a file are shortened. A note
    /// replaces the missing part. Commands and paths are never shortened, because a policy rule
    /// must see all of them.
    pub(super) fn shortened_to_limit(mut self) -> Option<OpenPermissionRequest> {
        let fits = |request: &PermissionRequest| {
            Payload::PermissionRequest(request.clone()).to_text().len() <= MESSAGE_LIMIT
        };
        let original = self.request.clone();
        let mut limits = TEXT_LIMITS.iter();
        while !fits(&self.request) {
            let length = *limits.next()?;
            self.request.input = shorten_value(&original.input, length);
            self.request.description = shorten_text(&original.description, length);
        }
        Some(self)
    }
}

/// Shortens each text in `value` that the tool would write to a file. `length` is the new length in
/// bytes. Other values are not changed.
fn shorten_value(value: &Value, length: usize) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(|element| shorten_value(element, length)).collect(),
        Value::Object(fields) => {
            let shorten = |(key, value): (&String, &Value)| {
                let short = match value {
                    Value::String(text) if is_text_key(key) => Value::String(shorten_text(text, length)),
                    value => shorten_value(value, length),
                };
                (key.clone(), short)
            };
            Value::Object(fields.iter().map(shorten).collect())
        }
        other => other.clone(),
    }
}

/// The beginning and the end of a text, with a note between them about the missing part.
fn shorten_text(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=length / 2).rev().find(is_boundary).unwrap_or(0);
    let tail = (text.len() - length / 2..text.len()).find(is_boundary).unwrap_or(text.len());
    format!("{}\n[… {} bytes are not shown …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// The answer that is sent to the agent's program. The lead can allow a tool with a different input
/// than the agent wants to use. The driver protocol has no field for a different input. So the tool
/// is denied, and the reason tells the agent which input is allowed.
pub(super) fn answer_for_agent(request: &PermissionRequest, outcome: PermissionOutcome) -> PermissionAnswer {
    match outcome {
        PermissionOutcome::Error { error } => PermissionAnswer::Deny { reason: error },
        PermissionOutcome::Success { response }
            if is_changed_input(&request.input, &response.updated_input) =>
        {
            PermissionAnswer::Deny {
                reason: format!("it is allowed with this input alone: {}", response.updated_input),
            }
        }
        PermissionOutcome::Success { response } if allows_from_now_on(&response, &request.tool_name) => {
            PermissionAnswer::AllowAlways
        }
        PermissionOutcome::Success { .. } => PermissionAnswer::AllowOnce,
    }
}

/// Whether the answer allows the tool for the rest of the session. If the answer allows the tool
/// only with some inputs, the result is false, because the agent's program would then allow the
/// tool with all inputs.
fn allows_from_now_on(granted: &PermissionGrant, tool: &str) -> bool {
    granted.permission_updates.iter().any(|update| match update {
        PermissionUpdate::AddRules { rules, behavior, .. } if behavior == "allow" => {
            rules.iter().any(|rule| rule.tool_name == tool && rule.rule_content.is_none())
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn permission_request() -> PermissionRequest {
        let question = PermissionQuestion {
            id: 1,
            tool_name: "Bash".into(),
            call_id: "c1".into(),
            title: "ls".into(),
            input: json!({"command": "ls"}),
            can_allow_always: true,
        };
        OpenPermissionRequest::new(question, "ann").request
    }

    #[test]
    fn only_file_contents_of_a_long_request_are_shortened() {
        let shortened_input = |input: Value| {
            let question = PermissionQuestion {
                id: 1,
                tool_name: "Edit".into(),
                call_id: "c1".into(),
                title: "é".repeat(9),
                input,
                can_allow_always: false,
            };
            OpenPermissionRequest::new(question, "ann").shortened_to_limit().map(|open| open.request.input)
        };
        let long = "é".repeat(150 << 10);
        let path = "p".repeat(20 << 10);
        let shortened =
            shortened_input(json!({"file_path": path, "edits": [{"old_string": long, "new_string": long}]}))
                .unwrap();
        assert_eq!(shortened["file_path"], path);
        let shown = shortened["edits"][0]["new_string"].as_str().unwrap();
        assert!(
            shown.len() < 20 << 10 && shown.contains("290816 bytes are not shown"),
            "{}",
            &shown[8190..8250]
        );
        assert_eq!(shortened_input(json!({"content": "x"})), Some(json!({"content": "x"})));
        assert_eq!(shortened_input(json!({"command": long})), None, "a command is never shortened");
    }

    fn answer(response: &Value) -> PermissionAnswer {
        let outcome = json!({"subtype": "success", "response": response});
        answer_for_agent(&permission_request(), serde_json::from_value(outcome).unwrap())
    }

    #[test]
    fn request_names_member_and_tool_and_suggests_a_rule() {
        let request = permission_request();
        assert_eq!((request.agent_id.as_str(), request.tool_name.as_str()), ("ann", "Bash"));
        assert_eq!((request.tool_use_id.as_str(), request.description.as_str()), ("c1", "ls"));
        assert!(request.request_id.as_str().starts_with("perm-"));
        assert_eq!(
            serde_json::to_value(&request.permission_suggestions).unwrap(),
            json!([{"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}])
        );
    }

    #[test]
    fn answer_never_grants_more_than_the_lead_allowed() {
        let rule = |tool: &str, content: Value| {
            json!({"type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{"toolName": tool, "ruleContent": content}]})
        };
        assert_eq!(answer(&json!({"updated_input": {"command": "ls"}})), PermissionAnswer::AllowOnce);
        assert_eq!(answer(&json!({})), PermissionAnswer::AllowOnce);
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Bash", Value::Null)]})),
            PermissionAnswer::AllowAlways
        );
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Bash", json!("ls:*"))]})),
            PermissionAnswer::AllowOnce
        );
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Edit", Value::Null)]})),
            PermissionAnswer::AllowOnce
        );
        let changed = answer(&json!({"updated_input": {"command": "ls -l"}}));
        assert!(matches!(changed, PermissionAnswer::Deny { reason } if reason.contains("ls -l")));
        let denial = PermissionOutcome::Error { error: "no".into() };
        assert_eq!(
            answer_for_agent(&permission_request(), denial),
            PermissionAnswer::Deny { reason: "no".into() }
        );
    }
}
