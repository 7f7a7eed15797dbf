//! A request that waits for an answer, whole: what a person reads before the answer.

use protocol::member_request::{MemberRequest, MemberRequestKind};
use protocol::payload::{PermissionRequest, PlanApprovalRequest};
use protocol::policy::{Policy, PolicyDecision};
use protocol::text::single_line;
use serde_json::Value;
use store::{OpenRequest, RequestScanResult};

/// A request that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestView {
    /// What is asked, and by whom.
    pub request: OpenRequest,
    /// When the team's policy answers it, ms since the epoch, and how; none: it waits on.
    pub policy_answer: Option<(u64, bool)>,
}

/// Those that are open, oldest first.
pub fn open_requests(policy: &Policy, asking: RequestScanResult) -> Vec<RequestView> {
    let of = |request: OpenRequest| {
        let waits = request.request.kind() == MemberRequestKind::Plan
            && asking.plans_timed_out_twice.contains(&request.from);
        let ends = if waits { None } else { policy_answer_at(policy, &request) };
        RequestView { policy_answer: ends, request }
    };
    asking.open.into_iter().map(of).collect()
}

/// As far as the files tell: the daemon counts from when it saw the request.
fn policy_answer_at(policy: &Policy, request: &OpenRequest) -> Option<(u64, bool)> {
    let asks = matches!(policy.decide(&request.request, &request.cwd), PolicyDecision::Ask(_));
    let approved = matches!(policy.timeout_decision()?, PolicyDecision::Approve(_));
    let at = request.asked_at.saturating_add(policy.answer_timeout_ms?);
    (asks && request.asked_at > 0).then_some((at, approved))
}

/// All of it, over several lines.
pub fn request_text(asked: &MemberRequest) -> String {
    match asked {
        MemberRequest::Plan(plan) => plan_text(plan),
        MemberRequest::Permission(permission) => permission_text(permission),
    }
}

fn plan_text(plan: &PlanApprovalRequest) -> String {
    let place = if plan.plan_file_path.is_empty() {
        String::new()
    } else {
        format!(" ({})", single_line(&plan.plan_file_path))
    };
    format!("hands in a plan{place}:\n{}", plan.plan_content.trim_end())
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

/// Over several lines; a line end within a text stays `\n`, so that no text passes for a line of ours.
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
        let shown = permission_text(&serde_json::from_value(text).unwrap());
        let expected = "asks to use Bash team-lead: d\u{1b}[2J\ninput: {\n  \"command\": \"a\\nb\"\n}\nwith --always from now on too: [";
        assert!(shown.starts_with(expected), "{shown}");
        let plan = plan_text(
            &serde_json::from_value(
                json!({"from": "a", "requestId": "p", "planFilePath": "/x", "planContent": "1.\n2.\n"}),
            )
            .unwrap(),
        );
        assert_eq!(plan, "hands in a plan (/x):\n1.\n2.");
    }
}
