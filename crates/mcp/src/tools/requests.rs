//! `Requests`, `Approve`, `Deny`: what members ask leave for, and the answers; for the lead, where the team's policy
//! leaves them to the lead.

use super::schema::{Property, always, maybe};
use super::{Described, Effect, at_files};
use crate::program::Call;
use crate::seat::Seat;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::RequestId;
use protocol::member_request::{Answer, Approval};
use protocol::permission_mode::PermissionMode;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{now, require_lead};

/// The tool.
pub(super) struct Requests;

/// It takes none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Described for Requests {
    const NAME: &'static str = "Requests";
    const TITLE: &'static str = "Show open requests";
    const TEXT: &'static str = "Show the plans that wait for an approval and the permissions that members ask for, \
        whole; for the lead. Answer them with Approve or Deny.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Nothing;
    const OUTPUT: &'static [Property] = &[always("requests", "array")];

    async fn call(seat: &Arc<Seat>, _: Nothing) -> Result<Value, ErrorReport> {
        require_lead(seat.me(), "see the requests")?;
        seat.needed_team()?;
        Call::of("requests").run(seat).await
    }
}

/// The tool.
pub(super) struct Approve;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Yes {
    /// The request's id.
    id: String,
    /// Of a plan: the permission mode in which it is carried out; yours where it is left out.
    #[serde(default)]
    mode: Option<String>,
    /// Of a permission: the tool's input, if it shall be another one.
    #[serde(default)]
    input: Option<Map<String, Value>>,
}

const ANSWERED: &[Property] = &[
    always("success", "boolean"),
    always("message", "string"),
    maybe("request_id", "string"),
    maybe("target", "string"),
];

impl Described for Approve {
    const NAME: &'static str = "Approve";
    const TITLE: &'static str = "Approve a request";
    const TEXT: &'static str = "Say yes to a member's plan or to the use of a tool; for the lead. Read the request \
        first: what it asks for is done then.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Yes;
    const OUTPUT: &'static [Property] = ANSWERED;

    async fn call(seat: &Arc<Seat>, given: Yes) -> Result<Value, ErrorReport> {
        let mode = given.mode.as_deref().map(mode).transpose()?;
        let approval = Approval { mode, input: given.input.map(Value::Object), apply_suggestions: false };
        answer(seat, id(&given.id)?, Answer::Approve(approval)).await
    }
}

fn mode(word: &str) -> Result<PermissionMode, ErrorReport> {
    word.parse().map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot approve in the mode {word:?}: {error}"))
    })
}

/// The tool.
pub(super) struct Deny;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct No {
    /// The request's id.
    id: String,
    /// Why not, and what to do instead.
    reason: String,
}

impl Described for Deny {
    const NAME: &'static str = "Deny";
    const TITLE: &'static str = "Deny a request";
    const TEXT: &'static str =
        "Say no to a member's plan or to the use of a tool, and say why; for the lead.";
    const EFFECT: Effect = Effect::Adds;
    type Input = No;
    const OUTPUT: &'static [Property] = ANSWERED;

    async fn call(seat: &Arc<Seat>, given: No) -> Result<Value, ErrorReport> {
        answer(seat, id(&given.id)?, Answer::Deny { reason: given.reason }).await
    }
}

fn id(word: &str) -> Result<RequestId, ErrorReport> {
    RequestId::parse(word).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, error.to_string()).with_help("Requests shows the ids")
    })
}

/// Says yes or no. Whoever calls a tool is a program: what the team's policy leaves to a person is not its to answer.
pub(super) async fn answer(
    seat: &Arc<Seat>,
    request: RequestId,
    answer: Answer,
) -> Result<Value, ErrorReport> {
    require_lead(seat.me(), "answer a request")?;
    at_files(seat, move |seat| seat.caller()?.answer_request_as_program(request.as_str(), &answer, now()))
        .await
}
