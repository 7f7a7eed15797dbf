//! The tools, one file for each kind. A tool's input is one flat struct, whose schema is made from it; what it can't
//! do comes back as a result that says so, never as an error of the protocol, which programs show to nobody.

mod inbox;
mod requests;
mod schema;
mod send_message;
mod spawn;
mod task;
mod team;
mod wait;

use crate::server_context::ServerContext;
use protocol::error::{ErrorKind, ErrorReport};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;

/// What a tool does to the world, in the words of the protocol. None of ours reaches beyond the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolEffect {
    /// It looks.
    ReadOnly,
    /// It adds.
    Additive,
    /// It changes, and twice is as once.
    Idempotent,
    /// It removes.
    Destructive,
}

/// One tool.
trait ToolDefinition {
    /// As it is called.
    const NAME: &'static str;
    /// For people.
    const TITLE: &'static str;
    /// For models.
    const DESCRIPTION: &'static str;
    /// For whoever decides whether to ask.
    const EFFECT: ToolEffect;
    /// Its arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The properties of its result: name, type, and whether it is always there.
    const OUTPUT: &'static [schema::Property];

    /// Does it.
    fn call(
        seat: &Arc<ServerContext>,
        input: Self::Input,
    ) -> impl Future<Output = Result<Value, ErrorReport>> + Send;
}

type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ErrorReport>> + Send + 'a>>;

/// A tool in the table of all.
pub(crate) struct ToolEntry {
    /// As it is listed.
    pub(crate) tool: Tool,
    /// Calls it with the arguments as they came.
    pub(crate) run: for<'a> fn(&'a Arc<ServerContext>, JsonObject) -> ToolFuture<'a>,
}

/// All tools, in the order in which they are listed.
pub(crate) fn all_tools() -> Vec<ToolEntry> {
    vec![
        tool_entry::<send_message::SendMessageTool>(),
        tool_entry::<team::TeamCreateTool>(),
        tool_entry::<team::TeamDeleteTool>(),
        tool_entry::<spawn::SpawnTeammateTool>(),
        tool_entry::<task::TaskCreateTool>(),
        tool_entry::<task::TaskGetTool>(),
        tool_entry::<task::TaskListTool>(),
        tool_entry::<task::TaskUpdateTool>(),
        tool_entry::<inbox::ReadInboxTool>(),
        tool_entry::<inbox::MarkReadTool>(),
        tool_entry::<wait::WaitTool>(),
        tool_entry::<requests::RequestsTool>(),
        tool_entry::<requests::ApproveTool>(),
        tool_entry::<requests::DenyTool>(),
    ]
}

fn tool_entry<T: ToolDefinition + 'static>() -> ToolEntry {
    let mut tool = Tool::new(T::NAME, T::DESCRIPTION, Arc::new(schema::input_schema::<T::Input>()));
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(schema::output_schema(T::OUTPUT)));
    tool.annotations = Some(annotations(T::TITLE, T::EFFECT));
    ToolEntry { tool, run: |seat, arguments| Box::pin(call_tool::<T>(seat, arguments)) }
}

async fn call_tool<T: ToolDefinition>(
    seat: &Arc<ServerContext>,
    arguments: JsonObject,
) -> Result<Value, ErrorReport> {
    T::call(seat, schema::parse_arguments(T::NAME, arguments)?).await
}

fn annotations(title: &str, effect: ToolEffect) -> ToolAnnotations {
    let reads = effect == ToolEffect::ReadOnly;
    let again = matches!(effect, ToolEffect::ReadOnly | ToolEffect::Idempotent);
    ToolAnnotations::from_raw(
        Some(title.to_owned()),
        Some(reads),
        Some(effect == ToolEffect::Destructive),
        Some(again),
        Some(false),
    )
}

/// Does what blocks, at the files, beside the loop.
async fn run_blocking<T: Send + 'static>(
    seat: &Arc<ServerContext>,
    act: impl FnOnce(&ServerContext) -> Result<T, ErrorReport> + Send + 'static,
) -> Result<T, ErrorReport> {
    let seat = Arc::clone(seat);
    let done = tokio::task::spawn_blocking(move || act(&seat)).await;
    done.unwrap_or_else(|_| {
        Err(ErrorReport::new(ErrorKind::Internal, "cannot finish the call: it failed within"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_have_object_schemas() {
        for ToolEntry { tool, .. } in all_tools() {
            assert_eq!(tool.input_schema["type"], json!("object"), "{}", tool.name);
            assert!(tool.input_schema["properties"].is_object(), "{}", tool.name);
            let output = tool.output_schema.expect("it has one");
            assert_eq!(output["type"], json!("object"), "{}", tool.name);
            assert!(tool.description.is_some_and(|text| text.len() > 20), "{}", tool.name);
        }
    }

    #[test]
    fn tools_take_no_sender_and_schemas_are_plain() {
        for ToolEntry { tool, .. } in all_tools() {
            let schema = json!(tool.input_schema).to_string();
            for word in
                ["\"from\"", "\"sender\"", "\"agent_id\"", "$ref", "$defs", "oneOf", "anyOf", "\"null\""]
            {
                assert!(!schema.contains(word), "{}: {word} in {schema}", tool.name);
            }
        }
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        for ToolEntry { tool, .. } in all_tools() {
            assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        }
        let object = |value: Value| value.as_object().cloned().expect("it is one");
        let given = object(json!({"taskId": "1", "add_blocked_by": ["2"]}));
        let refused =
            schema::parse_arguments::<<task::TaskUpdateTool as ToolDefinition>::Input>("TaskUpdate", given);
        let refused = refused.expect_err("it is refused");
        assert!(refused.message.contains("unknown field `add_blocked_by`"), "{refused:?}");
        assert!(refused.message.contains("`addBlockedBy`"), "{refused:?}");
    }

    #[test]
    fn annotations_match_effects() {
        let of = |name: &str| {
            let entry = all_tools().into_iter().find(|entry| entry.tool.name == name).expect("it is there");
            let hints = entry.tool.annotations.expect("it has them");
            assert_eq!(hints.open_world_hint, Some(false), "{name}");
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        };
        for name in ["TaskGet", "TaskList", "ReadInbox", "Requests", "Wait"] {
            assert_eq!(of(name), (Some(true), Some(false), Some(true)), "{name}");
        }
        assert_eq!(of("SendMessage"), (Some(false), Some(false), Some(false)));
        assert_eq!(of("TaskUpdate"), (Some(false), Some(false), Some(true)));
        assert_eq!(of("TeamDelete"), (Some(false), Some(true), Some(false)));
    }
}
