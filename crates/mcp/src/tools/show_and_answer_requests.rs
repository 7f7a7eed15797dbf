//! The tools `Requests`, `Approve` and `Deny`. They show the plan and permission requests of
//! members, and answer them. Only the lead may use these tools. The lead cannot answer a request
//! that the team's policy leaves to a person.

use super::input_and_output_schemas::{NoInput, Property, optional_property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_request::{Answer, Approval};
use protocol::member_task_and_request_ids::RequestId;
use protocol::permission_mode::PermissionMode;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::now;

pub(super) struct RequestsTool;

impl ToolDefinition for RequestsTool {
    const NAME: &'static str = "Requests";
    const TITLE: &'static str = "Show open requests";
    const DESCRIPTION: &'static str = "Show in full the plans that wait for approval and the permissions that members ask \
        for; for the lead. Answer them with Approve or Deny.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = NoInput;
    const OUTPUT: &'static [Property] = &[required_property("requests", "array")];

    async fn call(context: &Arc<ServerContext>, _: NoInput) -> Result<Value, ErrorReport> {
        context.require_team()?;
        TeamctlCommand::new("requests").run(context).await
    }
}

pub(super) struct ApproveTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveInput {
    /// The request's id.
    id: String,
    /// For a plan: the permission mode in which the member carries out the plan. By default your
    /// own mode.
    #[serde(default)]
    mode: Option<String>,
    /// For a permission: another input for the tool, in place of the member's.
    #[serde(default)]
    input: Option<Map<String, Value>>,
}

const ANSWER_OUTPUT: &[Property] = &[
    required_property("success", "boolean"),
    required_property("message", "string"),
    optional_property("request_id", "string"),
    optional_property("target", "string"),
];

impl ToolDefinition for ApproveTool {
    const NAME: &'static str = "Approve";
    const TITLE: &'static str = "Approve a request";
    const DESCRIPTION: &'static str = "Approve a member's plan or its use of a tool; for the lead. Read the request first: \
        the member then does what it asks for.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = ApproveInput;
    const OUTPUT: &'static [Property] = ANSWER_OUTPUT;

    async fn call(context: &Arc<ServerContext>, input: ApproveInput) -> Result<Value, ErrorReport> {
        let mode = input.mode.as_deref().map(parse_mode).transpose()?;
        let approval = Approval { mode, input: input.input.map(Value::Object), apply_suggestions: false };
        answer_request(context, parse_request_id(&input.id)?, Answer::Approve(approval)).await
    }
}

fn parse_mode(text: &str) -> Result<PermissionMode, ErrorReport> {
    text.parse().map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot approve in the mode {text:?}: {error}"))
    })
}

pub(super) struct DenyTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DenyInput {
    /// The request's id.
    id: String,
    /// Why the request is denied, and what to do instead.
    reason: String,
}

impl ToolDefinition for DenyTool {
    const NAME: &'static str = "Deny";
    const TITLE: &'static str = "Deny a request";
    const DESCRIPTION: &'static str = "Deny a member's plan or its use of a tool, and say why; for the lead.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = DenyInput;
    const OUTPUT: &'static [Property] = ANSWER_OUTPUT;

    async fn call(context: &Arc<ServerContext>, input: DenyInput) -> Result<Value, ErrorReport> {
        answer_request(context, parse_request_id(&input.id)?, Answer::Deny { reason: input.reason }).await
    }
}

fn parse_request_id(text: &str) -> Result<RequestId, ErrorReport> {
    RequestId::parse(text).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, error.to_string()).with_help("Requests shows the ids")
    })
}

/// Answers a plan or permission request of a member. The caller of a tool counts as a program, not
/// as a person. So this function refuses requests that the team's policy reserves for a person.
pub(super) async fn answer_request(
    context: &Arc<ServerContext>,
    request: RequestId,
    answer: Answer,
) -> Result<Value, ErrorReport> {
    AllowedCallers::LeadOrPerson.check("answer a request", context.member())?;
    run_blocking(context, move |context| {
        context.caller()?.answer_request_as_program(request.as_str(), &answer, now())
    })
    .await
}
