//! Requests of a member that need an answer (a plan or a permission), and the answers.

use crate::inbox_message_payload::{
    Payload, PermissionGrant, PermissionOutcome, PermissionRequest, PermissionResponse, PlanApprovalRequest,
    PlanApprovalResponse,
};
use crate::member_task_and_request_ids::RequestId;
use crate::permission_mode::PermissionMode;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A member's request that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberRequest {
    /// Asks for approval of a plan.
    Plan(PlanApprovalRequest),
    /// Asks for permission to use a tool.
    Permission(PermissionRequest),
}

/// The kind of a member's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemberRequestKind {
    /// A plan that needs approval.
    #[serde(rename = "plan_approval_request")]
    Plan,
    /// A tool call that needs permission.
    #[serde(rename = "permission_request")]
    Permission,
}

/// The answer to a member's request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Approves the request.
    Approve(Approval),
    /// Denies the request.
    Deny {
        /// The reason, or what to do instead.
        reason: String,
    },
}

/// Details of an approval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approval {
    /// For a plan: the permission mode in which the member carries out the plan. `None` leaves the
    /// choice of the mode to the daemon.
    pub mode: Option<PermissionMode>,
    /// For a permission: the input that the tool gets. `None` keeps the request's input.
    pub input: Option<Value>,
    /// For a permission: whether the permission changes that the request suggests are granted too.
    pub apply_suggestions: bool,
}

impl MemberRequestKind {
    /// The `type` of the request's payload.
    pub fn as_str(self) -> &'static str {
        match self {
            MemberRequestKind::Plan => "plan_approval_request",
            MemberRequestKind::Permission => "permission_request",
        }
    }
}

impl MemberRequest {
    /// Parses a message's text. `None` if the text is no request of these kinds.
    pub fn parse(text: &str) -> Option<MemberRequest> {
        match Payload::parse(text)? {
            Payload::PlanApprovalRequest(plan) => Some(MemberRequest::Plan(plan)),
            Payload::PermissionRequest(request) => Some(MemberRequest::Permission(request)),
            _ => None,
        }
    }

    /// The request's id.
    pub fn id(&self) -> &RequestId {
        match self {
            MemberRequest::Plan(plan) => &plan.request_id,
            MemberRequest::Permission(request) => &request.request_id,
        }
    }

    /// The request's kind.
    pub fn kind(&self) -> MemberRequestKind {
        match self {
            MemberRequest::Plan(_) => MemberRequestKind::Plan,
            MemberRequest::Permission(_) => MemberRequestKind::Permission,
        }
    }

    /// A short summary. May contain control characters of other programs.
    pub fn summary(&self) -> String {
        match self {
            MemberRequest::Plan(_) => "submits a plan".to_owned(),
            MemberRequest::Permission(request) => format!("asks to use {}", request.tool_name),
        }
    }

    /// Returns why `answer` does not fit this request. `None` if it does.
    pub fn check_answer(&self, answer: &Answer) -> Option<&'static str> {
        let Answer::Approve(approval) = answer else { return None };
        match self {
            MemberRequest::Plan(_) if approval.input.is_some() || approval.apply_suggestions => {
                Some("it is a plan, and takes neither an input nor suggestions")
            }
            MemberRequest::Plan(_) if approval.mode == Some(PermissionMode::Plan) => {
                Some("with the mode plan it would not be approved")
            }
            MemberRequest::Permission(_) if approval.mode.is_some() => {
                Some("it asks for one tool, and takes no mode")
            }
            _ => None,
        }
    }

    /// The payload of the message with which the member gets `answer`. `at_ms` is the current time in
    /// milliseconds since the epoch. `mode` is the permission mode for an approved plan, if the answer itself
    /// names no mode.
    pub fn response(&self, answer: &Answer, mode: PermissionMode, at_ms: u64) -> Payload {
        match self {
            MemberRequest::Plan(plan) => {
                Payload::PlanApprovalResponse(plan_response(plan, answer, mode, at_ms))
            }
            MemberRequest::Permission(request) => {
                Payload::PermissionResponse(permission_response(request, answer))
            }
        }
    }
}

fn plan_response(
    plan: &PlanApprovalRequest,
    answer: &Answer,
    mode: PermissionMode,
    at_ms: u64,
) -> PlanApprovalResponse {
    let (approved, feedback, mode) = match answer {
        Answer::Approve(approval) => (true, None, Some(approval.mode.unwrap_or(mode).to_string())),
        Answer::Deny { reason } => (false, Some(reason.clone()), None),
    };
    let (request_id, timestamp) = (plan.request_id.clone(), iso8601(at_ms));
    PlanApprovalResponse { request_id, approved, feedback, timestamp, permission_mode: mode }
}

fn permission_response(request: &PermissionRequest, answer: &Answer) -> PermissionResponse {
    let outcome = match answer {
        Answer::Approve(approval) => PermissionOutcome::Success {
            response: PermissionGrant {
                updated_input: approval.input.clone().unwrap_or_else(|| request.input.clone()),
                permission_updates: if approval.apply_suggestions {
                    request.permission_suggestions.clone()
                } else {
                    Vec::new()
                },
            },
        },
        Answer::Deny { reason } => PermissionOutcome::Error { error: reason.clone() },
    };
    PermissionResponse { request_id: request.request_id.clone(), outcome }
}

/// Parses a message's text as an answer to a request. Returns the id of the answered request and
/// whether it was approved. `None` if the text is not an answer.
pub fn parse_answer(text: &str) -> Option<(RequestId, bool)> {
    answered_request(&Payload::parse(text)?)
}

/// The id of the request that `payload` answers, and whether it was approved. `None` if `payload`
/// is not an answer.
pub fn answered_request(payload: &Payload) -> Option<(RequestId, bool)> {
    match payload {
        Payload::PlanApprovalResponse(answer) => Some((answer.request_id.clone(), answer.approved)),
        Payload::PermissionResponse(answer) => {
            Some((answer.request_id.clone(), matches!(answer.outcome, PermissionOutcome::Success { .. })))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"d","input":{"command":"ls","x":1.50},"permission_suggestions":[{"type":"addDirectories","directories":["/x"],"destination":"session"}]}"#;
    const PLAN: &str = r#"{"type":"plan_approval_request","from":"ann","timestamp":"t","planFilePath":"p","planContent":"c","requestId":"plan-1"}"#;

    fn response(request: &str, answer: &Answer) -> String {
        let request = MemberRequest::parse(request).unwrap();
        assert_eq!(request.check_answer(answer), None);
        let text = request.response(answer, PermissionMode::AcceptEdits, 1).to_text();
        let is_approval = matches!(answer, Answer::Approve(_));
        assert_eq!(parse_answer(&text), Some((request.id().clone(), is_approval)));
        text
    }

    fn approve(approval: Approval) -> Answer {
        Answer::Approve(approval)
    }

    #[test]
    fn answer_to_a_plan_has_all_fields() {
        let deny = Answer::Deny { reason: "smaller".into() };
        assert_eq!(
            response(PLAN, &deny),
            r#"{"type":"plan_approval_response","requestId":"plan-1","approved":false,"feedback":"smaller","timestamp":"1970-01-01T00:00:00.001Z"}"#
        );
        let approved = |mode: &str| {
            format!(
                r#"{{"type":"plan_approval_response","requestId":"plan-1","approved":true,"timestamp":"1970-01-01T00:00:00.001Z","permissionMode":"{mode}"}}"#
            )
        };
        assert_eq!(response(PLAN, &approve(Approval::default())), approved("acceptEdits"));
        let own = Approval { mode: Some(PermissionMode::DontAsk), ..Approval::default() };
        assert_eq!(response(PLAN, &approve(own)), approved("dontAsk"));
    }

    #[test]
    fn answer_to_a_permission_has_all_fields() {
        let expected =
            |rest: &str| format!(r#"{{"type":"permission_response","request_id":"perm-1",{rest}}}"#);
        assert_eq!(
            response(PERMISSION, &approve(Approval::default())),
            expected(
                r#""subtype":"success","response":{"updated_input":{"command":"ls","x":1.5},"permission_updates":[]}"#
            )
        );
        let more = Approval { input: Some(serde_json::json!({})), apply_suggestions: true, mode: None };
        assert_eq!(
            response(PERMISSION, &approve(more)),
            expected(
                r#""subtype":"success","response":{"updated_input":{},"permission_updates":[{"type":"addDirectories","directories":["/x"],"destination":"session"}]}"#
            )
        );
        let deny = Answer::Deny { reason: "no".into() };
        assert_eq!(response(PERMISSION, &deny), expected(r#""subtype":"error","error":"no""#));
    }

    #[test]
    fn unsupported_parts_of_an_answer_are_refused() {
        let (plan, permission) =
            (MemberRequest::parse(PLAN).unwrap(), MemberRequest::parse(PERMISSION).unwrap());
        let mode = |mode| approve(Approval { mode: Some(mode), ..Approval::default() });
        assert!(plan.check_answer(&mode(PermissionMode::Plan)).is_some());
        assert!(permission.check_answer(&mode(PermissionMode::Default)).is_some());
        assert!(
            plan.check_answer(&approve(Approval { apply_suggestions: true, ..Approval::default() }))
                .is_some()
        );
        assert!(
            plan.check_answer(&approve(Approval { input: Some(Value::Null), ..Approval::default() }))
                .is_some()
        );
        assert_eq!(parse_answer(PLAN), None);
        assert_eq!(MemberRequest::parse("hello"), None);
    }
}
