//! What a member asks and somebody has to answer, a plan or a question for permission, and the answers to it.

use crate::id::RequestId;
use crate::payload::{
    Payload, PermissionGrant, PermissionOutcome, PermissionRequest, PermissionResponse, PlanApprovalRequest,
    PlanApprovalResponse,
};
use crate::permission_mode::PermissionMode;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request that waits for a yes or a no.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberRequest {
    /// May this plan be carried out?
    Plan(PlanApprovalRequest),
    /// May this tool be used?
    Permission(PermissionRequest),
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemberRequestKind {
    /// A plan.
    #[serde(rename = "plan_approval_request")]
    Plan,
    /// A question for permission.
    #[serde(rename = "permission_request")]
    Permission,
}

/// A yes or a no.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Yes.
    Approve(Approval),
    /// No.
    Deny {
        /// Why, or what to do instead.
        reason: String,
    },
}

/// What goes with a yes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approval {
    /// To a plan: the mode to go on in.
    pub mode: Option<PermissionMode>,
    /// To a tool: the input to use in place of the request's own.
    pub input: Option<Value>,
    /// To a tool: what the request suggests is allowed from now on too.
    pub apply_suggestions: bool,
}

impl MemberRequestKind {
    /// The payload's type.
    pub fn as_str(self) -> &'static str {
        match self {
            MemberRequestKind::Plan => "plan_approval_request",
            MemberRequestKind::Permission => "permission_request",
        }
    }
}

impl MemberRequest {
    /// Reads a message's text; none where it asks nothing of the kind.
    pub fn parse(text: &str) -> Option<MemberRequest> {
        match Payload::parse(text)? {
            Payload::PlanApprovalRequest(plan) => Some(MemberRequest::Plan(plan)),
            Payload::PermissionRequest(request) => Some(MemberRequest::Permission(request)),
            _ => None,
        }
    }

    /// What the answer refers to.
    pub fn id(&self) -> &RequestId {
        match self {
            MemberRequest::Plan(plan) => &plan.request_id,
            MemberRequest::Permission(request) => &request.request_id,
        }
    }

    /// Which of the two.
    pub fn kind(&self) -> MemberRequestKind {
        match self {
            MemberRequest::Plan(_) => MemberRequestKind::Plan,
            MemberRequest::Permission(_) => MemberRequestKind::Permission,
        }
    }

    /// In a few words, not safe to show as they stand.
    pub fn summary(&self) -> String {
        match self {
            MemberRequest::Plan(_) => "hands in a plan".to_owned(),
            MemberRequest::Permission(request) => format!("asks to use {}", request.tool_name),
        }
    }

    /// What in `answer` this request has no use for.
    pub fn check_answer(&self, answer: &Answer) -> Option<&'static str> {
        let Answer::Approve(yes) = answer else { return None };
        match self {
            MemberRequest::Plan(_) if yes.input.is_some() || yes.apply_suggestions => {
                Some("it is a plan, and takes neither an input nor suggestions")
            }
            MemberRequest::Plan(_) if yes.mode == Some(PermissionMode::Plan) => {
                Some("with the mode plan it would not be approved")
            }
            MemberRequest::Permission(_) if yes.mode.is_some() => {
                Some("it asks for one tool, and takes no mode")
            }
            _ => None,
        }
    }

    /// The answer as the member is told, at `at_ms` (ms since the epoch). A plan that is approved without a mode goes
    /// on in `mode`.
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
        Answer::Approve(yes) => (true, None, Some(yes.mode.unwrap_or(mode).to_string())),
        Answer::Deny { reason } => (false, Some(reason.clone()), None),
    };
    let (request_id, timestamp) = (plan.request_id.clone(), iso8601(at_ms));
    PlanApprovalResponse { request_id, approved, feedback, timestamp, permission_mode: mode }
}

fn permission_response(request: &PermissionRequest, answer: &Answer) -> PermissionResponse {
    let outcome = match answer {
        Answer::Approve(yes) => PermissionOutcome::Success {
            response: PermissionGrant {
                updated_input: yes.input.clone().unwrap_or_else(|| request.input.clone()),
                permission_updates: if yes.apply_suggestions {
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

/// Which request a message's text answers, and whether with a yes.
pub fn parse_answer(text: &str) -> Option<(RequestId, bool)> {
    answered_request(&Payload::parse(text)?)
}

/// The same of what a text says.
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

    fn response(asked: &str, answer: &Answer) -> String {
        let asked = MemberRequest::parse(asked).unwrap();
        assert_eq!(asked.check_answer(answer), None);
        let text = asked.response(answer, PermissionMode::AcceptEdits, 1).to_text();
        let yes = matches!(answer, Answer::Approve(_));
        assert_eq!(parse_answer(&text), Some((asked.id().clone(), yes)));
        text
    }

    fn yes(approval: Approval) -> Answer {
        Answer::Approve(approval)
    }

    #[test]
    fn a_plans_answer_has_every_field() {
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
        assert_eq!(response(PLAN, &yes(Approval::default())), approved("acceptEdits"));
        let own = Approval { mode: Some(PermissionMode::DontAsk), ..Approval::default() };
        assert_eq!(response(PLAN, &yes(own)), approved("dontAsk"));
    }

    #[test]
    fn a_permissions_answer_has_every_field() {
        let expected =
            |rest: &str| format!(r#"{{"type":"permission_response","request_id":"perm-1",{rest}}}"#);
        assert_eq!(
            response(PERMISSION, &yes(Approval::default())),
            expected(
                r#""subtype":"success","response":{"updated_input":{"command":"ls","x":1.5},"permission_updates":[]}"#
            )
        );
        let more = Approval { input: Some(serde_json::json!({})), apply_suggestions: true, mode: None };
        assert_eq!(
            response(PERMISSION, &yes(more)),
            expected(
                r#""subtype":"success","response":{"updated_input":{},"permission_updates":[{"type":"addDirectories","directories":["/x"],"destination":"session"}]}"#
            )
        );
        let deny = Answer::Deny { reason: "no".into() };
        assert_eq!(response(PERMISSION, &deny), expected(r#""subtype":"error","error":"no""#));
    }

    #[test]
    fn what_an_answer_can_not_carry_is_refused() {
        let (plan, permission) =
            (MemberRequest::parse(PLAN).unwrap(), MemberRequest::parse(PERMISSION).unwrap());
        let mode = |mode| yes(Approval { mode: Some(mode), ..Approval::default() });
        assert!(plan.check_answer(&mode(PermissionMode::Plan)).is_some());
        assert!(permission.check_answer(&mode(PermissionMode::Default)).is_some());
        assert!(
            plan.check_answer(&yes(Approval { apply_suggestions: true, ..Approval::default() })).is_some()
        );
        assert!(
            plan.check_answer(&yes(Approval { input: Some(Value::Null), ..Approval::default() })).is_some()
        );
        assert_eq!(parse_answer(PLAN), None);
        assert_eq!(MemberRequest::parse("hello"), None);
    }
}
