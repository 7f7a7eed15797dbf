//! A question for permission, as the team's members ask it, and which of the agent's options an answer is: pure.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, ToolCallContent,
    ToolCallUpdateFields, ToolKind,
};
use protocol::driver::{Answer, Asked};
use serde_json::{Map, Value};

/// What the agent wants to do.
pub(crate) fn asked(ask: u64, request: &RequestPermissionRequest) -> Asked {
    let fields = &request.tool_call.fields;
    Asked {
        ask,
        tool: tool(fields),
        call: request.tool_call.tool_call_id.to_string(),
        title: fields.title.clone().unwrap_or_default(),
        input: input(fields),
        always: request.options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways),
    }
}

/// The tool's own name, else that of Claude Code's tool which does the like: so that one rule fits all members.
fn tool(fields: &ToolCallUpdateFields) -> String {
    if let Some(name) = fields.name.as_ref().filter(|name| !name.is_empty()) {
        return name.clone();
    }
    let name = match fields.kind {
        Some(ToolKind::Read) => "Read",
        Some(ToolKind::Edit) => "Edit",
        Some(ToolKind::Delete) => "Delete",
        Some(ToolKind::Move) => "Move",
        Some(ToolKind::Search) => "Grep",
        Some(ToolKind::Execute) => "Bash",
        Some(ToolKind::Fetch) => "WebFetch",
        Some(ToolKind::SwitchMode) => "ExitPlanMode",
        _ => "Tool",
    };
    name.to_owned()
}

/// What the tool is given; where the agent does not say so, what can be seen of it.
fn input(fields: &ToolCallUpdateFields) -> Value {
    if let Some(Value::Object(input)) = &fields.raw_input
        && !input.is_empty()
    {
        return Value::Object(input.clone());
    }
    let mut input = Map::new();
    let mut put = |key: &str, value: String| drop(input.insert(key.to_owned(), Value::String(value)));
    if let (Some(ToolKind::Execute), Some(title)) = (fields.kind, &fields.title) {
        put("command", title.clone());
    }
    if let Some(location) = fields.locations.iter().flatten().next() {
        put("file_path", location.path.display().to_string());
    }
    for content in fields.content.iter().flatten() {
        if let ToolCallContent::Diff(diff) = content {
            put("file_path", diff.path.display().to_string());
            put("old_string", diff.old_text.clone().unwrap_or_default());
            put("new_string", diff.new_text.clone());
        }
    }
    Value::Object(input)
}

/// The agent's option for an answer; none: it offers nothing that grants no more than that.
pub(crate) fn choice(options: &[PermissionOption], answer: &Answer) -> Option<PermissionOptionId> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = match answer {
        Answer::Once => &[AllowOnce][..],
        Answer::Always => &[AllowAlways, AllowOnce],
        Answer::Not { .. } => &[RejectOnce, RejectAlways],
    };
    let of = |kind: &PermissionOptionKind| options.iter().find(|option| option.kind == *kind);
    kinds.iter().find_map(of).map(|option| option.option_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(call: &Value, kinds: &[&str]) -> RequestPermissionRequest {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"optionId": format!("o-{kind}"), "name": kind, "kind": kind}))
            .collect();
        let request = json!({"sessionId": "s", "toolCall": call, "options": options});
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn a_command_and_an_edit_are_asked_as_others_ask_them() {
        let call = json!({"toolCallId": "c1", "kind": "execute", "title": "rm -r x"});
        let of = asked(7, &request(&call, &["allow_once", "allow_always", "reject_once"]));
        assert_eq!((of.ask, of.tool.as_str(), of.call.as_str(), of.always), (7, "Bash", "c1", true));
        assert_eq!(of.input, json!({"command": "rm -r x"}));
        let diff = json!([{"type": "diff", "path": "/a/b", "oldText": "x", "newText": "y"}]);
        let call = json!({"toolCallId": "c2", "kind": "edit", "title": "b", "content": diff});
        let of = asked(8, &request(&call, &["allow_once"]));
        assert_eq!((of.tool.as_str(), of.always), ("Edit", false));
        assert_eq!(of.input, json!({"file_path": "/a/b", "old_string": "x", "new_string": "y"}));
        let call = json!({"toolCallId": "c3", "name": "write_file", "kind": "edit", "rawInput": {"p": 1}});
        let of = asked(9, &request(&call, &[]));
        assert_eq!((of.tool.as_str(), of.input), ("write_file", json!({"p": 1})));
    }

    #[test]
    fn no_answer_grants_more_than_it_says() {
        let of = |kinds: &[&str], answer: &Answer| {
            let request = request(&json!({"toolCallId": "c"}), kinds);
            choice(&request.options, answer).map(|id| id.to_string())
        };
        let all = ["reject_always", "allow_always", "allow_once", "reject_once"];
        let not = Answer::Not { why: String::new() };
        assert_eq!(of(&all, &Answer::Once).as_deref(), Some("o-allow_once"));
        assert_eq!(of(&all, &Answer::Always).as_deref(), Some("o-allow_always"));
        assert_eq!(of(&all, &not).as_deref(), Some("o-reject_once"));
        assert_eq!(of(&["allow_once"], &Answer::Always).as_deref(), Some("o-allow_once"));
        assert_eq!(of(&["allow_always"], &Answer::Once), None);
        assert_eq!(of(&["allow_once"], &not), None);
    }
}
