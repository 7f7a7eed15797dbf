//! The tools, one file for each kind. The input of a tool is one flat struct, from which the tool's
//! JSON schema is generated. A tool that fails returns an error result and not a protocol error,
//! because clients do not show protocol errors to the model.

mod ask;
mod create_and_delete_team;
mod create_read_and_update_tasks;
mod input_and_output_schemas;
mod read_inbox_and_mark_read;
mod send_message;
mod show_and_answer_requests;
mod spawn_teammate;
mod tool_definition;
mod wait_for_message_member_or_task;

use crate::server_context::ServerContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::ErrorReport;
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
pub(crate) use tool_definition::run_blocking;
use tool_definition::{ToolDefinition, annotations};

type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ErrorReport>> + Send + 'a>>;

/// A tool in the list of all tools.
pub(crate) struct ToolEntry {
    /// The tool as clients see it.
    pub(crate) tool: Tool,
    /// Who may call the tool; the lead and a person may call every tool. The server checks this
    /// before each call. It does not check the team: `teamctl mcp` starts a member's server only
    /// for the member's own team.
    pub(crate) allowed_callers: AllowedCallers<'static>,
    /// Parses the arguments and runs the tool.
    pub(crate) run: for<'a> fn(&'a Arc<ServerContext>, JsonObject) -> ToolFuture<'a>,
}

/// All tools, in the order in which clients see them.
pub(crate) fn all_tools() -> Vec<ToolEntry> {
    vec![
        tool_entry::<send_message::SendMessageTool>(),
        tool_entry::<create_and_delete_team::TeamCreateTool>(),
        tool_entry::<create_and_delete_team::TeamDeleteTool>(),
        tool_entry::<spawn_teammate::SpawnTeammateTool>(),
        tool_entry::<ask::AskTool>(),
        tool_entry::<create_read_and_update_tasks::TaskCreateTool>(),
        tool_entry::<create_read_and_update_tasks::TaskGetTool>(),
        tool_entry::<create_read_and_update_tasks::TaskListTool>(),
        tool_entry::<create_read_and_update_tasks::TaskUpdateTool>(),
        tool_entry::<read_inbox_and_mark_read::ReadInboxTool>(),
        tool_entry::<read_inbox_and_mark_read::MarkReadTool>(),
        tool_entry::<wait_for_message_member_or_task::WaitTool>(),
        tool_entry::<show_and_answer_requests::RequestsTool>(),
        tool_entry::<show_and_answer_requests::ApproveTool>(),
        tool_entry::<show_and_answer_requests::DenyTool>(),
    ]
}

fn tool_entry<T: ToolDefinition + 'static>() -> ToolEntry {
    let mut tool =
        Tool::new(T::NAME, T::DESCRIPTION, Arc::new(input_and_output_schemas::input_schema::<T::Input>()));
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(input_and_output_schemas::output_schema(T::OUTPUT)));
    tool.annotations = Some(annotations(T::TITLE, T::EFFECT));
    ToolEntry {
        tool,
        allowed_callers: T::ALLOWED_CALLERS,
        run: |context, arguments| Box::pin(call_tool::<T>(context, arguments)),
    }
}

async fn call_tool<T: ToolDefinition>(
    context: &Arc<ServerContext>,
    arguments: JsonObject,
) -> Result<Value, ErrorReport> {
    T::call(context, input_and_output_schemas::parse_arguments(T::NAME, arguments)?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn page_says_who_may_call_each_tool() {
        let page = include_str!("../../../../docs/permissions.md");
        let table = page.split("<!-- permissions: tools -->\n").nth(1).unwrap();
        let documented: Vec<(&str, &str)> = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .map(|row| row.trim_matches('|').split_once('|').unwrap())
            .flat_map(|(caller, tools)| {
                tools.trim().split(", ").map(|tool| (tool.trim_matches('`'), caller.trim()))
            })
            .collect();
        let declared = all_tools().into_iter().map(|entry| {
            let caller = match entry.allowed_callers {
                AllowedCallers::Everyone => "everyone",
                AllowedCallers::LeadOrPerson => "the lead, a person",
                AllowedCallers::MemberLeadOrPerson(name) => panic!("{name}"),
            };
            (entry.tool.name.to_string(), caller)
        });
        let (declared, documented): (BTreeMap<String, &str>, BTreeMap<&str, &str>) =
            (declared.collect(), documented.into_iter().collect());
        assert!(declared.iter().map(|(tool, caller)| (tool.as_str(), *caller)).eq(documented));
    }

    #[test]
    fn tools_have_object_schemas() {
        for ToolEntry { tool, .. } in all_tools() {
            assert_eq!(tool.input_schema["type"], json!("object"), "{}", tool.name);
            assert!(tool.input_schema["properties"].is_object(), "{}", tool.name);
            let output = tool.output_schema.expect("the tool has an output schema");
            assert_eq!(output["type"], json!("object"), "{}", tool.name);
            assert!(tool.description.is_some_and(|text| text.len() > 20), "{}", tool.name);
        }
    }

    #[test]
    fn tools_take_no_sender_and_schemas_are_plain() {
        for ToolEntry { tool, .. } in all_tools() {
            let schema = json!(tool.input_schema).to_string();
            for unwanted in
                ["\"from\"", "\"sender\"", "\"agent_id\"", "$ref", "$defs", "oneOf", "anyOf", "\"null\""]
            {
                assert!(!schema.contains(unwanted), "{}: {unwanted} in {schema}", tool.name);
            }
        }
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        for ToolEntry { tool, .. } in all_tools() {
            assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        }
        let object = |value: Value| value.as_object().cloned().expect("the value is an object");
        let arguments = object(json!({"taskId": "1", "add_blocked_by": ["2"]}));
        let result = input_and_output_schemas::parse_arguments::<
            <create_read_and_update_tasks::TaskUpdateTool as ToolDefinition>::Input,
        >("TaskUpdate", arguments);
        let error = result.expect_err("the unknown field is rejected");
        assert!(error.message.contains("unknown field `add_blocked_by`"), "{error:?}");
        assert!(error.message.contains("`addBlockedBy`"), "{error:?}");
    }

    #[test]
    fn delegate_mode_knows_every_tool() {
        let mut names: Vec<String> =
            all_tools().into_iter().map(|entry| entry.tool.name.to_string()).collect();
        names.sort_unstable();
        assert_eq!(names, protocol::delegate_mode_rules::TEAM_TOOLS);
    }

    #[test]
    fn annotations_match_effects() {
        let hints_of = |name: &str| {
            let entry =
                all_tools().into_iter().find(|entry| entry.tool.name == name).expect("the tool exists");
            let hints = entry.tool.annotations.expect("the tool has annotations");
            assert_eq!(hints.open_world_hint, Some(false), "{name}");
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        };
        for name in ["TaskGet", "TaskList", "ReadInbox", "Requests", "Wait"] {
            assert_eq!(hints_of(name), (Some(true), Some(false), Some(true)), "{name}");
        }
        assert_eq!(hints_of("SendMessage"), (Some(false), Some(false), Some(false)));
        assert_eq!(hints_of("TaskUpdate"), (Some(false), Some(false), Some(true)));
        assert_eq!(hints_of("TeamDelete"), (Some(false), Some(true), Some(false)));
    }
}
