//! Converts permission requests of the program into permission questions for the team, and converts
//! the team's answers into options of the program's request. The functions are pure.

use agent_client_protocol::v1::schema::{
    Diff, PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest,
    ToolCallContent, ToolCallUpdateFields, ToolKind,
};
use protocol::acp_driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::policy::CAPTION_KEY;
use serde_json::{Map, Value};

/// The permission question for a permission request of the program. `id` is the number that the
/// driver gives to the question.
pub(crate) fn permission_question(id: u64, request: &RequestPermissionRequest) -> PermissionQuestion {
    let fields = &request.tool_call.fields;
    PermissionQuestion {
        id,
        tool_name: tool_name(fields),
        call_id: request.tool_call.tool_call_id.to_string(),
        title: fields.title.clone().unwrap_or_default(),
        input: tool_input(fields),
        can_allow_always: request
            .options
            .iter()
            .any(|option| option.kind == PermissionOptionKind::AllowAlways),
    }
}

/// The name of the tool in a tool call, as the program reports it. If the program reports no name,
/// the result is the name of Claude Code's tool for the same kind of work. So one policy rule for a
/// tool applies to members with different programs.
fn tool_name(fields: &ToolCallUpdateFields) -> String {
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

/// The tool's input. If the program reports none, this function builds an input from the other
/// fields of the tool call.
///
/// The result contains every path in the tool call, because policy rules check all paths.
///
/// If this function builds the input of a command, it stores the tool call's title under the key
/// `caption`, for people. Policy rules never allow a command by this title, because the title may
/// differ from the real command.
fn tool_input(fields: &ToolCallUpdateFields) -> Value {
    let given = fields.raw_input.as_ref().and_then(Value::as_object).filter(|input| !input.is_empty());
    let mut input = given.cloned().unwrap_or_else(|| input_from_content(fields));
    let diffs = diffs(fields).map(|diff| diff.path.display().to_string());
    let locations = fields.locations.iter().flatten().map(|location| location.path.display().to_string());
    let mut more: Vec<Value> = Vec::new();
    for path in diffs.chain(locations).map(Value::String) {
        if !more.contains(&path) && !input.values().any(|value| contains_value(value, &path)) {
            more.push(path);
        }
    }
    if !more.is_empty() {
        input.insert("paths".to_owned(), Value::Array(more));
    }
    Value::Object(input)
}

fn input_from_content(fields: &ToolCallUpdateFields) -> Map<String, Value> {
    let mut edits: Vec<Map<String, Value>> = diffs(fields).map(edit_input).collect();
    let mut input = if edits.is_empty() { Map::new() } else { edits.remove(0) };
    if !edits.is_empty() {
        input.insert("edits".to_owned(), edits.into_iter().map(Value::Object).collect());
    }
    if let (Some(ToolKind::Execute), Some(title)) = (fields.kind, &fields.title) {
        input.insert(CAPTION_KEY.to_owned(), Value::String(title.clone()));
    }
    input
}

fn diffs(fields: &ToolCallUpdateFields) -> impl Iterator<Item = &Diff> {
    fields.content.iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    })
}

fn edit_input(diff: &Diff) -> Map<String, Value> {
    let texts = [
        ("file_path", diff.path.display().to_string()),
        ("old_string", diff.old_text.clone().unwrap_or_default()),
        ("new_string", diff.new_text.clone()),
    ];
    texts.into_iter().map(|(key, text)| (key.to_owned(), Value::String(text))).collect()
}

/// Whether `value` is `path` or contains it.
fn contains_value(value: &Value, path: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|element| contains_value(element, path)),
        Value::Object(fields) => fields.values().any(|field| contains_value(field, path)),
        text => text == path,
    }
}

/// The option in the program's permission request that fits `answer`. It never allows more than
/// `answer` does. `None` if the request has no such option.
pub(crate) fn option_for_answer(
    options: &[PermissionOption],
    answer: &PermissionAnswer,
) -> Option<PermissionOptionId> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = match answer {
        PermissionAnswer::AllowOnce => &[AllowOnce][..],
        PermissionAnswer::AllowAlways => &[AllowAlways, AllowOnce],
        PermissionAnswer::Deny { .. } => &[RejectOnce, RejectAlways],
    };
    let find = |kind: &PermissionOptionKind| options.iter().find(|option| option.kind == *kind);
    kinds.iter().find_map(find).map(|option| option.option_id.clone())
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
    fn questions_use_common_tool_names_and_inputs() {
        let call = json!({"toolCallId": "c1", "kind": "execute", "title": "rm -r x"});
        let question =
            permission_question(7, &request(&call, &["allow_once", "allow_always", "reject_once"]));
        assert_eq!(
            (question.id, question.tool_name.as_str(), question.call_id.as_str(), question.can_allow_always),
            (7, "Bash", "c1", true)
        );
        assert_eq!(question.input, json!({"caption": "rm -r x"}), "the title is not used as a command");
        let diff = json!([{"type": "diff", "path": "/a/b", "oldText": "x", "newText": "y"}]);
        let call = json!({"toolCallId": "c2", "kind": "edit", "title": "b", "content": diff});
        let question = permission_question(8, &request(&call, &["allow_once"]));
        assert_eq!((question.tool_name.as_str(), question.can_allow_always), ("Edit", false));
        assert_eq!(question.input, json!({"file_path": "/a/b", "old_string": "x", "new_string": "y"}));
        let call = json!({"toolCallId": "c3", "name": "write_file", "kind": "edit", "rawInput": {"p": 1}});
        let question = permission_question(9, &request(&call, &[]));
        assert_eq!((question.tool_name.as_str(), question.input), ("write_file", json!({"p": 1})));
    }

    #[test]
    fn question_contains_every_path() {
        let diff = |path: &str| json!({"type": "diff", "path": path, "oldText": "x", "newText": "y"});
        let edit = |path: &str| json!({"file_path": path, "old_string": "x", "new_string": "y"});
        let input = |call: Value| permission_question(1, &request(&call, &[])).input;
        let with_several_paths =
            input(json!({"toolCallId": "c", "kind": "edit", "content": [diff("/etc/passwd"), diff("/w/a")],
            "locations": [{"path": "/w/a"}, {"path": "/w/b"}]}));
        let mut expected = edit("/etc/passwd");
        expected["edits"] = json!([edit("/w/a")]);
        expected["paths"] = json!(["/w/b"]);
        assert_eq!(with_several_paths, expected);
        let with_raw_input = json!({"toolCallId": "c", "kind": "edit", "rawInput": {"file_path": "/w/a"}, "content": [diff("/w/a")],
            "locations": [{"path": "/etc/passwd"}]});
        assert_eq!(input(with_raw_input), json!({"file_path": "/w/a", "paths": ["/etc/passwd"]}));
        let read = json!({"toolCallId": "c", "kind": "read", "locations": [{"path": "/w/a"}]});
        assert_eq!(input(read), json!({"paths": ["/w/a"]}));
    }

    #[test]
    fn answer_never_grants_more() {
        let chosen_option = |kinds: &[&str], answer: &PermissionAnswer| {
            let request = request(&json!({"toolCallId": "c"}), kinds);
            option_for_answer(&request.options, answer).map(|id| id.to_string())
        };
        let all = ["reject_always", "allow_always", "allow_once", "reject_once"];
        let deny = PermissionAnswer::Deny { reason: String::new() };
        assert_eq!(chosen_option(&all, &PermissionAnswer::AllowOnce).as_deref(), Some("o-allow_once"));
        assert_eq!(chosen_option(&all, &PermissionAnswer::AllowAlways).as_deref(), Some("o-allow_always"));
        assert_eq!(chosen_option(&all, &deny).as_deref(), Some("o-reject_once"));
        assert_eq!(
            chosen_option(&["allow_once"], &PermissionAnswer::AllowAlways).as_deref(),
            Some("o-allow_once")
        );
        assert_eq!(chosen_option(&["allow_always"], &PermissionAnswer::AllowOnce), None);
        assert_eq!(chosen_option(&["allow_once"], &deny), None);
    }
}
