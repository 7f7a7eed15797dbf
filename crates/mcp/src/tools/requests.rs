//! `Requests`, `Approve`, `Deny`: what members ask leave for, and the answers; for the lead, where the team's policy
//! leaves them to the lead.

use super::schema::{Property, always, maybe};
use super::{Described, Effect, at_files};
use crate::program::Call;
use crate::seat::Seat;
use protocol::fault::{Fault, Kind};
use protocol::id::RequestId;
use protocol::policy::{Decision, Who};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::lead_only;

/// The tool.
pub(super) struct Requests;

/// It takes none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Nothing {}

impl Described for Requests {
    const NAME: &'static str = "Requests";
    const TITLE: &'static str = "Show open requests";
    const TEXT: &'static str = "Show the plans that wait for an approval and the permissions that members ask for, \
        whole; for the lead. Answer them with Approve or Deny.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Nothing;
    const OUTPUT: &'static [Property] = &[always("requests", "array")];

    async fn call(seat: &Arc<Seat>, _: Nothing) -> Result<Value, Fault> {
        lead_only(seat.me(), "see the requests")?;
        seat.needed_team()?;
        Call::of("requests").run(seat).await
    }
}

/// The tool.
pub(super) struct Approve;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
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

const ANSWERED: &[Property] =
    &[always("success", "boolean"), always("message", "string"), maybe("request_id", "string")];

impl Described for Approve {
    const NAME: &'static str = "Approve";
    const TITLE: &'static str = "Approve a request";
    const TEXT: &'static str = "Say yes to a member's plan or to the use of a tool; for the lead. Read the request \
        first: what it asks for is done then.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Yes;
    const OUTPUT: &'static [Property] = ANSWERED;

    async fn call(seat: &Arc<Seat>, given: Yes) -> Result<Value, Fault> {
        let input = given.input.map(|input| Value::Object(input).to_string());
        approve(seat, &id(&given.id)?, given.mode.as_deref(), input.as_deref()).await
    }
}

/// The tool.
pub(super) struct Deny;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
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

    async fn call(seat: &Arc<Seat>, given: No) -> Result<Value, Fault> {
        deny(seat, &id(&given.id)?, &given.reason).await
    }
}

fn id(word: &str) -> Result<RequestId, Fault> {
    RequestId::parse(word)
        .map_err(|error| Fault::new(Kind::Usage, error.to_string()).hinted("Requests shows the ids"))
}

/// Says yes.
pub(super) async fn approve(
    seat: &Arc<Seat>,
    request: &RequestId,
    mode: Option<&str>,
    input: Option<&str>,
) -> Result<Value, Fault> {
    lead_only(seat.me(), "approve a request")?;
    leave(seat, request).await?;
    let call = Call::of("approve").option("mode", mode).option("input", input);
    told(call.rest([request.to_string()]).run(seat).await?, request, "Approved")
}

/// Says no.
pub(super) async fn deny(seat: &Arc<Seat>, request: &RequestId, reason: &str) -> Result<Value, Fault> {
    lead_only(seat.me(), "deny a request")?;
    leave(seat, request).await?;
    let call = Call::of("deny").option("reason", Some(reason));
    told(call.rest([request.to_string()]).run(seat).await?, request, "Denied")
}

/// Whoever calls a tool is a program: what the team's policy leaves to a person is not its to answer.
async fn leave(seat: &Arc<Seat>, request: &RequestId) -> Result<(), Fault> {
    let id = request.to_string();
    at_files(seat, move |seat| {
        let caller = seat.caller()?;
        let request = caller.team().requests().find(&id)?;
        match caller.policy()?.decide(&request.asked, &request.cwd) {
            Decision::Ask(Who::Person) => {
                let message = format!("cannot answer {id}: the team's policy leaves that to a person");
                Err(Fault::new(Kind::NotPermitted, message)
                    .hinted("ask the person to answer it: teamctl requests; meanwhile go on with other work"))
            }
            _ => Ok(()),
        }
    })
    .await
}

fn told(mut answer: Value, request: &RequestId, how: &str) -> Result<Value, Fault> {
    let Some(answer_keys) = answer.as_object_mut() else {
        return Err(Fault::new(Kind::Internal, "cannot understand the answer of teamctl"));
    };
    answer_keys.entry("success").or_insert(json!(true));
    answer_keys.entry("message").or_insert_with(|| json!(format!("{how}: {request}")));
    answer_keys.entry("request_id").or_insert_with(|| json!(request));
    Ok(answer)
}
