//! Describes a stored message for people. A payload, such as a task assignment in JSON, is
//! described in words. Other text is shown as it is.

use protocol::inbox_message_payload::{IdleNotification, Payload, PermissionOutcome};

/// The text of a message for people. A payload is described in words.
pub fn message_text(text: &str) -> String {
    match Payload::parse(text) {
        Some(payload) => payload_text(&payload),
        None => text.to_owned(),
    }
}

/// Describes a payload in words.
fn payload_text(payload: &Payload) -> String {
    use Payload as P;
    match payload {
        P::IdleNotification(idle) => with_detail("is idle", &idle_details(idle)),
        P::TaskAssignment(task) => with_detail(&format!("task {} is yours", task.task_id), &task.subject),
        P::TaskCompleted(task) => {
            with_detail(&format!("task {} is completed", task.task_id), &task.task_subject)
        }
        P::ShutdownRequest(request) => {
            let action = format!("asks for a shutdown, request {}", request.request_id);
            with_detail(&action, request.reason.as_deref().unwrap_or_default())
        }
        P::ShutdownApproved(approval) => format!("approves the shutdown, request {}", approval.request_id),
        P::ShutdownRejected(rejection) => {
            with_detail(&format!("rejects the shutdown, request {}", rejection.request_id), &rejection.reason)
        }
        P::PlanApprovalRequest(plan) => {
            format!("submits a plan, request {}\n{}", plan.request_id, plan.plan_content)
        }
        P::PlanApprovalResponse(answer) => {
            let word = if answer.approved { "approves" } else { "rejects" };
            let feedback = answer.feedback.as_deref().unwrap_or_default();
            with_detail(&format!("{word} the plan, request {}", answer.request_id), feedback)
        }
        P::PermissionRequest(request) => {
            let action = format!("asks to use {}, request {}", request.tool_name, request.request_id);
            with_detail(&action, &request.description)
        }
        P::PermissionResponse(answer) => match &answer.outcome {
            PermissionOutcome::Success { .. } => format!("permits it, request {}", answer.request_id),
            PermissionOutcome::Error { error } => {
                with_detail(&format!("does not permit it, request {}", answer.request_id), error)
            }
        },
        P::ModeSetRequest(request) => format!("sets the permission mode to {}", request.mode),
        P::TeamPermissionUpdate(update) => with_detail("changes the team's permissions", &update.tool_name),
        P::TeammateTerminated(end) => end.message.clone(),
        P::TaskNotification(end) => end.message.clone(),
    }
}

fn idle_details(idle: &IdleNotification) -> String {
    let status = idle.completed_status.as_deref().unwrap_or("completed");
    let task = idle.completed_task_id.as_ref().map(|id| format!("task {id} {status}"));
    let detail = [task.as_ref(), idle.summary.as_ref(), idle.failure_reason.as_ref()];
    detail.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn with_detail(action: &str, detail: &str) -> String {
    if detail.is_empty() { action.to_owned() } else { format!("{action}: {detail}") }
}
