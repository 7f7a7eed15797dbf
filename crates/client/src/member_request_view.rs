//! Views of the open requests of members, and their text for the person who answers them.

use protocol::inbox_message_payload::{PermissionRequest, PlanApprovalRequest};
use protocol::member_request::{MemberRequest, MemberRequestKind};
use protocol::policy::{Policy, PolicyDecision};
use protocol::single_line::single_line;
use serde_json::Value;
use store::{OpenRequest, RequestScanResult};

/// An open request of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberRequestView {
    /// The request and its sender.
    pub request: OpenRequest,
    /// What the team's policy will answer after the timeout of the request: the time of the answer,
    /// in milliseconds since the epoch, and whether it is an approval. `None` if the policy will
    /// not answer.
    pub policy_answer: Option<(u64, bool)>,
}

/// The open requests, oldest first.
pub fn open_requests(policy: &Policy, scan: RequestScanResult) -> Vec<MemberRequestView> {
    let to_view = |request: OpenRequest| {
        let needs_person = request.request.kind() == MemberRequestKind::Plan
            && scan.plans_timed_out_twice.contains(&request.from);
        let policy_answer = if needs_person { None } else { policy_answer_at(policy, &request) };
        MemberRequestView { policy_answer, request }
    };
    scan.open.into_iter().map(to_view).collect()
}

/// What the policy will answer after the timeout of the request: the time of the answer, in
/// milliseconds since the epoch, and whether it is an approval.
///
/// The time is an estimate, because the daemon counts the timeout from the moment when it noticed
/// the request. This function counts it from the time that the request itself contains.
fn policy_answer_at(policy: &Policy, request: &OpenRequest) -> Option<(u64, bool)> {
    let needs_answer = matches!(policy.decide(&request.request, &request.cwd), PolicyDecision::Ask(_));
    let is_approved = matches!(policy.timeout_decision()?, PolicyDecision::Approve(_));
    let answer_at = request.last_asked_at.saturating_add(policy.answer_timeout_ms?);
    (needs_answer && request.last_asked_at > 0).then_some((answer_at, is_approved))
}

/// The whole request, as text of several lines.
pub fn request_text(request: &MemberRequest) -> String {
    match request {
        MemberRequest::Plan(plan) => plan_text(plan),
        MemberRequest::Permission(permission) => permission_text(permission),
    }
}

fn plan_text(plan: &PlanApprovalRequest) -> String {
    let path = if plan.plan_file_path.is_empty() {
        String::new()
    } else {
        format!(" ({})", single_line(&plan.plan_file_path))
    };
    format!("submits a plan{path}:\n{}", plan.plan_content.trim_end())
}

fn permission_text(request: &PermissionRequest) -> String {
    let mut text = format!("asks to use {}", single_line(&request.tool_name));
    if !request.description.trim().is_empty() {
        text.push_str(&format!(": {}", request.description.trim()));
    }
    if !request.input.is_null() {
        text.push_str(&format!("\ninput: {}", pretty_json(&request.input)));
    }
    if !request.permission_suggestions.is_empty() {
        let suggestions = serde_json::to_value(&request.permission_suggestions).unwrap_or(Value::Null);
        text.push_str(&format!("\nwith --always from now on too: {}", pretty_json(&suggestions)));
    }
    text
}

/// Formats JSON over several lines. A line break inside a string is written as `\n`, so that the
/// string cannot imitate another line of the output.
fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn permission_text_is_complete() {
        let text = json!({"request_id": "p", "agent_id": "a", "tool_name": "Bash\nteam-lead", "description": "d\u{1b}[2J",
            "input": {"command": "a\nb"}, "permission_suggestions": [{"type": "setMode", "mode": "plan", "destination": "session"}]});
        let rendered = permission_text(&serde_json::from_value(text).unwrap());
        let expected = "asks to use Bash team-lead: d\u{1b}[2J\ninput: {\n  \"command\": \"a\\nb\"\n}\nwith --always from now on too: [";
        assert!(rendered.starts_with(expected), "{rendered}");
        let plan = plan_text(
            &serde_json::from_value(
                json!({"from": "a", "requestId": "p", "planFilePath": "/x", "planContent": "1.\n2.\n"}),
            )
            .unwrap(),
        );
        assert_eq!(plan, "submits a plan (/x):\n1.\n2.");
    }
}
