//! The tool `SendMessage`. Agent programs pass its arguments in two shapes. The older shape has
//! `type`, `recipient` and `content`. The later shape has `to` and `message`, which is a text or an
//! object. Both shapes are accepted by one flat struct, because clients accept no schema of a
//! tagged enum. The arguments are parsed into a [`SendAction`] before any file is changed.

use super::input_and_output_schemas::{Property, optional_property, required_property};
use super::show_and_answer_requests::answer_request;
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_request::{Answer as RequestAnswer, Approval};
use protocol::member_task_and_request_ids::RequestId;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{ShutdownDecision, now};

/// How long a member may take to answer a shutdown request.
const SHUTDOWN_GRACE: &str = "10m";

pub(super) struct SendMessageTool;

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageInput {
    /// message (default), broadcast, shutdown_request, shutdown_response or plan_approval_response.
    #[serde(default)]
    #[schemars(extend("enum" = ["message", "broadcast", "shutdown_request", "shutdown_response", "plan_approval_response"]))]
    r#type: Option<String>,
    /// The member that gets it: NAME or NAME@TEAM. Not for a broadcast or a shutdown_response.
    #[serde(default)]
    recipient: Option<String>,
    /// The text. With a shutdown_request, or with approve false in a response: the reason.
    #[serde(default)]
    content: Option<String>,
    /// A summary of five to ten words.
    #[serde(default)]
    summary: Option<String>,
    /// For a response: the id of the request that it answers.
    #[serde(default)]
    request_id: Option<String>,
    /// For a response: whether you approve.
    #[serde(default)]
    approve: Option<bool>,
    /// The same as recipient; "*" is all members.
    #[serde(default)]
    to: Option<String>,
    /// The same as content; or an object {type, request_id, approve, reason, feedback}.
    #[serde(default)]
    #[schemars(schema_with = "text_or_object")]
    message: Option<Value>,
    /// The same as content, for a reason.
    #[serde(default)]
    reason: Option<String>,
    /// The same as content, for a plan_approval_response.
    #[serde(default)]
    feedback: Option<String>,
}

fn text_or_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["string", "object"]})
}

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
enum SendAction {
    ByFiles(FileAction),
    RequestShutdown { to: String, reason: Option<String> },
    AnswerPlan { request: RequestId, answer: RequestAnswer },
}

/// An action that needs only the team's files.
#[derive(Debug, PartialEq)]
enum FileAction {
    Message { to: String, text: String, summary: Option<String> },
    Broadcast { text: String, summary: Option<String> },
    AnswerShutdown { request: RequestId, answer: ShutdownDecision },
}

impl ToolDefinition for SendMessageTool {
    const NAME: &'static str = "SendMessage";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str = "Send a message to a member of your team, or to all. The team does not see your plain \
        answers: this is how you talk to other members. {recipient: \"ann\", content: \"the text\", summary: \"a few \
        words\"}. type broadcast: to all members, which is seldom needed. type shutdown_request (lead): asks a teammate \
        to shut down. type shutdown_response (teammate): answers such a request, with request_id and approve, and with \
        a reason in content if approve is false. type plan_approval_response (lead): answers a plan, with request_id \
        and approve.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = SendMessageInput;
    const OUTPUT: &'static [Property] = &[
        required_property("success", "boolean"),
        required_property("message", "string"),
        optional_property("routing", "object"),
        optional_property("recipients", "array"),
        optional_property("request_id", "string"),
        optional_property("target", "string"),
    ];

    async fn call(context: &Arc<ServerContext>, input: SendMessageInput) -> Result<Value, ErrorReport> {
        match parse_action(input)? {
            SendAction::RequestShutdown { to, reason } => request_shutdown(context, to, reason).await,
            SendAction::AnswerPlan { request, answer } => answer_request(context, request, answer).await,
            SendAction::ByFiles(action) => run_blocking(context, move |context| action.run(context)).await,
        }
    }
}

impl FileAction {
    fn run(self, context: &ServerContext) -> Result<Value, ErrorReport> {
        let caller = context.caller()?;
        match self {
            FileAction::Message { to, text, summary } => {
                Ok(caller.send(&to, text, summary.as_deref(), now())?.to_json())
            }
            FileAction::Broadcast { text, summary } => {
                let sent = caller.broadcast(text, summary.as_deref(), now())?;
                sent.partial_error().map_or_else(|| Ok(sent.to_json()), Err)
            }
            FileAction::AnswerShutdown { request, answer } => {
                caller.answer_shutdown(&request, &answer, now())
            }
        }
    }
}

async fn request_shutdown(
    context: &Arc<ServerContext>,
    to: String,
    reason: Option<String>,
) -> Result<Value, ErrorReport> {
    AllowedCallers::LeadOrPerson.check("shut a member down", context.member())?;
    let name = run_blocking(context, move |context| context.caller()?.resolve_member(&to)).await?;
    let call = TeamctlCommand::new("shutdown")
        .flag("no-wait")
        .option("grace", Some(SHUTDOWN_GRACE))
        .option_from_stdin("reason", reason);
    let mut result = call.args_after_dashes([name.to_string()]).run(context).await?;
    if result.get("message").is_none() {
        result["message"] = json!(format!("{name} has ended already"));
    }
    Ok(result)
}

/// Finds out what the arguments ask for. The error names what is missing.
fn parse_action(input: SendMessageInput) -> Result<SendAction, ErrorReport> {
    let flat = FlatInput::new(input)?;
    match flat.kind.as_deref().unwrap_or("message") {
        "message" if flat.recipient.as_deref() != Some("*") => Ok(SendAction::ByFiles(FileAction::Message {
            to: flat.require_recipient()?,
            text: flat.require_text()?,
            summary: flat.summary,
        })),
        "message" | "broadcast" => Ok(SendAction::ByFiles(FileAction::Broadcast {
            text: flat.require_text()?,
            summary: flat.summary,
        })),
        "shutdown_request" => {
            Ok(SendAction::RequestShutdown { to: flat.require_recipient()?, reason: flat.content })
        }
        "shutdown_response" => {
            let (request, rejection) = (flat.require_request_id()?, flat.require_rejection()?);
            let answer =
                rejection.map_or(ShutdownDecision::Approve, |reason| ShutdownDecision::Reject { reason });
            Ok(SendAction::ByFiles(FileAction::AnswerShutdown { request, answer }))
        }
        "plan_approval_response" => {
            let (request, rejection) = (flat.require_request_id()?, flat.require_rejection()?);
            let approval = || RequestAnswer::Approve(Approval::default());
            let answer = rejection.map_or_else(approval, |reason| RequestAnswer::Deny { reason });
            Ok(SendAction::AnswerPlan { request, answer })
        }
        other => Err(ErrorReport::new(
            ErrorKind::Usage,
            format!("cannot send a {other:?}: there is no such type"),
        )
        .with_help(
            "there is: message, broadcast, shutdown_request, shutdown_response, plan_approval_response",
        )),
    }
}

/// The arguments in the flat shape.
#[derive(Debug)]
struct FlatInput {
    kind: Option<String>,
    recipient: Option<String>,
    content: Option<String>,
    summary: Option<String>,
    request_id: Option<String>,
    approve: Option<bool>,
}

impl FlatInput {
    /// Converts both shapes into the flat one.
    fn new(input: SendMessageInput) -> Result<FlatInput, ErrorReport> {
        let mut flat = FlatInput {
            kind: input.r#type,
            recipient: input.recipient.or(input.to),
            content: input.content,
            summary: input.summary,
            request_id: input.request_id,
            approve: input.approve,
        };
        match input.message {
            None => {}
            Some(Value::String(text)) => match parse_object_text(&text) {
                Some(object) => flat.merge_object(&object)?,
                None => flat.content = flat.content.or(Some(text)),
            },
            Some(Value::Object(object)) => flat.merge_object(&object)?,
            Some(other) => {
                return Err(ErrorReport::new(
                    ErrorKind::Usage,
                    format!("cannot send {other}: message is a text or an object"),
                )
                .with_help("for a text: {\"to\": NAME, \"message\": TEXT, \"summary\": \"a few words\"}"));
            }
        }
        flat.content = flat.content.or(input.reason).or(input.feedback);
        Ok(flat)
    }

    /// Adds the fields of the later shape's object. They take precedence over the other arguments.
    fn merge_object(&mut self, object: &Map<String, Value>) -> Result<(), ErrorReport> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let first = |keys: &[&str]| keys.iter().find_map(|key| text(key));
        let kind = text("type").ok_or_else(|| missing_argument("message.type", "say what the object is"))?;
        self.kind = Some(kind);
        self.request_id = first(&["request_id", "requestId"]).or(self.request_id.take());
        self.approve = object.get("approve").and_then(Value::as_bool).or(self.approve);
        self.content = first(&["reason", "feedback", "content"]).or(self.content.take());
        Ok(())
    }

    fn require_recipient(&self) -> Result<String, ErrorReport> {
        let recipient = self.recipient.clone().filter(|to| !to.trim().is_empty());
        recipient.ok_or_else(|| missing_argument("recipient", "put a member's name into recipient"))
    }

    fn require_text(&self) -> Result<String, ErrorReport> {
        self.content.clone().ok_or_else(|| missing_argument("content", "put the text into content"))
    }

    fn require_request_id(&self) -> Result<RequestId, ErrorReport> {
        let id = self.request_id.as_deref().unwrap_or_default();
        RequestId::parse(id).map_err(|error| {
            ErrorReport::new(ErrorKind::Usage, error.to_string())
                .with_help("request_id is the id that the request gives")
        })
    }

    /// The reason of a rejection, which must not be empty. `None` if the response approves.
    fn require_rejection(&self) -> Result<Option<String>, ErrorReport> {
        match self.approve {
            Some(true) => Ok(None),
            Some(false) => {
                let reason = self.content.clone().filter(|text| !text.trim().is_empty());
                let missing = || missing_argument("content", "put the reason into content");
                reason.ok_or_else(missing).map(Some)
            }
            None => Err(missing_argument("approve", "say true or false")),
        }
    }
}

/// Parses a message text that is a JSON object of a known `type`. Programs that cannot pass an
/// object as an argument pass its JSON as text. `None` for any other text.
fn parse_object_text(text: &str) -> Option<Map<String, Value>> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    let known = ["shutdown_request", "shutdown_response", "plan_approval_response"];
    object.get("type").and_then(Value::as_str).filter(|kind| known.contains(kind))?;
    Some(object)
}

fn missing_argument(name: &str, help: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Usage, format!("cannot send this: {name} is missing")).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: Value) -> Result<SendAction, ErrorReport> {
        parse_action(serde_json::from_value(arguments).unwrap())
    }

    fn message(to: &str, text: &str, summary: Option<&str>) -> SendAction {
        SendAction::ByFiles(FileAction::Message {
            to: to.into(),
            text: text.into(),
            summary: summary.map(str::to_owned),
        })
    }

    #[test]
    fn both_message_shapes_are_equal() {
        let flat = json!({"type": "message", "recipient": "ann", "content": "hi", "summary": "greeting"});
        assert_eq!(parse(flat), Ok(message("ann", "hi", Some("greeting"))));
        let later = json!({"to": "ann", "message": "hi", "summary": "greeting"});
        assert_eq!(parse(later), Ok(message("ann", "hi", Some("greeting"))));
        assert_eq!(parse(json!({"recipient": "ann", "content": "hi"})), Ok(message("ann", "hi", None)));
        let all = SendAction::ByFiles(FileAction::Broadcast { text: "hi".into(), summary: None });
        assert_eq!(parse(json!({"type": "broadcast", "content": "hi"})), Ok(all));
        let with_star = parse(json!({"to": "*", "message": "hi"}));
        assert!(matches!(with_star, Ok(SendAction::ByFiles(FileAction::Broadcast { .. }))));
    }

    #[test]
    fn both_request_shapes_are_equal() {
        let shutdown = |reason: Option<&str>| SendAction::RequestShutdown {
            to: "ann".into(),
            reason: reason.map(str::to_owned),
        };
        assert_eq!(
            parse(json!({"type": "shutdown_request", "recipient": "ann", "content": "done"})),
            Ok(shutdown(Some("done")))
        );
        assert_eq!(
            parse(json!({"to": "ann", "message": {"type": "shutdown_request", "reason": "done"}})),
            Ok(shutdown(Some("done")))
        );
        assert_eq!(parse(json!({"to": "ann", "message": {"type": "shutdown_request"}})), Ok(shutdown(None)));
        let id = RequestId::parse("shutdown-1@ann").unwrap();
        let answer_action =
            |answer| SendAction::ByFiles(FileAction::AnswerShutdown { request: id.clone(), answer });
        let rejection = answer_action(ShutdownDecision::Reject { reason: "busy".into() });
        let flat = json!({"type": "shutdown_response", "request_id": "shutdown-1@ann", "approve": false, "content": "busy"});
        assert_eq!(parse(flat).as_ref(), Ok(&rejection));
        let object = json!({"type": "shutdown_response", "request_id": "shutdown-1@ann", "approve": false, "reason": "busy"});
        assert_eq!(parse(json!({"to": "team-lead", "message": object})).as_ref(), Ok(&rejection));
        assert_eq!(
            parse(json!({"to": "team-lead", "message": object.to_string()})).as_ref(),
            Ok(&rejection),
            "the object may be a text"
        );
        let approval = json!({"type": "shutdown_response", "request_id": "shutdown-1@ann", "approve": true});
        assert_eq!(parse(approval), Ok(answer_action(ShutdownDecision::Approve)));
        let plan = json!({"type": "plan_approval_response", "request_id": "p-1", "approve": false, "feedback": "smaller"});
        let request = RequestId::parse("p-1").unwrap();
        let answer = RequestAnswer::Deny { reason: "smaller".into() };
        assert_eq!(parse(plan), Ok(SendAction::AnswerPlan { request, answer }));
    }

    #[test]
    fn missing_arguments_are_named() {
        for (arguments, missing) in [
            (json!({}), "recipient"),
            (json!({"recipient": " ", "content": "x"}), "recipient"),
            (json!({"recipient": "ann"}), "content"),
            (json!({"type": "broadcast"}), "content"),
            (json!({"type": "shutdown_request"}), "recipient"),
            (json!({"type": "shutdown_response", "approve": true}), "request id"),
            (json!({"type": "shutdown_response", "request_id": "x"}), "approve"),
            (json!({"type": "shutdown_response", "request_id": "x", "approve": false}), "content"),
            (json!({"type": "plan_approval_response", "request_id": "x", "approve": false}), "content"),
            (json!({"to": "ann", "message": {"reason": "x"}}), "message.type"),
            (json!({"to": "ann", "message": 7}), "message is a text or an object"),
            (json!({"type": "order", "recipient": "ann", "content": "x"}), "no such type"),
        ] {
            let error = parse(arguments.clone()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{arguments}");
            assert!(error.message.contains(missing), "{arguments}: {error}");
            assert!(error.help.is_some(), "{arguments}");
        }
    }

    #[test]
    fn json_like_text_stays_text() {
        for text in ["{\"type\":\"note\"}", "{", "[1]", "{\"a\":1}"] {
            assert_eq!(parse(json!({"to": "ann", "message": text})), Ok(message("ann", text, None)));
        }
    }
}
