//! `Requests`, `Approve`, `Deny`: what members ask leave for, and the answers; for the lead, where the team's policy
//! leaves them to the lead.

use super::schema::{Property, optional_property, required_property};
use super::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::RequestId;
use protocol::member_request::{Answer, Approval};
use protocol::permission_mode::PermissionMode;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{now, require_lead};

/// The tool.
pub(super) struct RequestsTool;

/// It takes none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoInput {}

impl ToolDefinition for RequestsTool {
    const NAME: &'static str = "Requests";
    const TITLE: &'static str = "Show open requests";
    const DESCRIPTION: &'static str = "Show the plans that wait for an approval and the permissions that members ask for, \
        whole; for the lead. Answer them with Approve or Deny.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    type Input = NoInput;
    const OUTPUT: &'static [Property] = &[required_property("requests", "array")];

    async fn call(seat: &Arc<ServerContext>, _: NoInput) -> Result<Value, ErrorReport> {
        require_lead(seat.member(), "see the requests")?;
        seat.require_team()?;
        TeamctlCommand::new("requests").run(seat).await
    }
}

/// The tool.
pub(super) struct ApproveTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveInput {
    /// The request's id.
    id: String,
    /// Of a plan: the permission mode in which it is carried out; yours where it is left out.
    #[serde(default)]
    mode: Option<String>,
    /// Of a permission: the tool's input, if it shall be another one.
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
    const DESCRIPTION: &'static str = "Say yes to a member's plan or to the use of a tool; for the lead. Read the request \
        first: what it asks for is done then.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    type Input = ApproveInput;
    const OUTPUT: &'static [Property] = ANSWER_OUTPUT;

    async fn call(seat: &Arc<ServerContext>, given: ApproveInput) -> Result<Value, ErrorReport> {
        let mode = given.mode.as_deref().map(parse_mode).transpose()?;
        let approval = Approval { mode, input: given.input.map(Value::Object), apply_suggestions: false };
        answer_request(seat, parse_request_id(&given.id)?, Answer::Approve(approval)).await
    }
}

fn parse_mode(word: &str) -> Result<PermissionMode, ErrorReport> {
    word.parse().map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot approve in the mode {word:?}: {error}"))
    })
}

/// The tool.
pub(super) struct DenyTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DenyInput {
    /// The request's id.
    id: String,
    /// Why not, and what to do instead.
    reason: String,
}

impl ToolDefinition for DenyTool {
    const NAME: &'static str = "Deny";
    const TITLE: &'static str = "Deny a request";
    const DESCRIPTION: &'static str =
        "Say no to a member's plan or to the use of a tool, and say why; for the lead.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    type Input = DenyInput;
    const OUTPUT: &'static [Property] = ANSWER_OUTPUT;

    async fn call(seat: &Arc<ServerContext>, given: DenyInput) -> Result<Value, ErrorReport> {
        answer_request(seat, parse_request_id(&given.id)?, Answer::Deny { reason: given.reason }).await
    }
}

fn parse_request_id(word: &str) -> Result<RequestId, ErrorReport> {
    RequestId::parse(word).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, error.to_string()).with_help("Requests shows the ids")
    })
}

/// Says yes or no. Whoever calls a tool is a program: what the team's policy leaves to a person is not its to answer.
pub(super) async fn answer_request(
    seat: &Arc<ServerContext>,
    request: RequestId,
    answer: Answer,
) -> Result<Value, ErrorReport> {
    require_lead(seat.member(), "answer a request")?;
    run_blocking(seat, move |seat| seat.caller()?.answer_request_as_program(request.as_str(), &answer, now()))
        .await
}
