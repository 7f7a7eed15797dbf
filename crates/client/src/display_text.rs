//! Describes payloads, budgets and durations in words for people.

use protocol::control::BudgetStatus;
use protocol::payload::{IdleNotification, Payload, PermissionOutcome};
use protocol::usage::{format_count, format_dollars};

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
        P::ShutdownApproved(yes) => format!("approves the shutdown, request {}", yes.request_id),
        P::ShutdownRejected(no) => {
            with_detail(&format!("rejects the shutdown, request {}", no.request_id), &no.reason)
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
    }
}

fn idle_details(idle: &IdleNotification) -> String {
    let status = idle.completed_status.as_deref().unwrap_or("completed");
    let task = idle.completed_task_id.as_ref().map(|id| format!("task {id} {status}"));
    let detail = [task.as_ref(), idle.summary.as_ref(), idle.failure_reason.as_ref()];
    detail.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

/// Formats a duration in seconds, minutes or hours: `119s`, `2m`, `3h`.
pub fn short_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

/// The elapsed part of the team's time limit, such as `2h of 8h`. `None` without a time limit.
pub fn time_budget_text(budget: &BudgetStatus, now: u64) -> Option<String> {
    budget.max_time_ms.map(|limit| {
        format!("{} of {}", short_duration(now.saturating_sub(budget.started_at)), short_duration(limit))
    })
}

/// Text for a team's usage and limits, such as `12 of 200 turns, 2h of 8h, 12.3k of 5.0M tokens,
/// $0.42`. `time` is the part about the time limit, such as `2h of 8h`.
pub fn budget_text(budget: &BudgetStatus, time: Option<String>) -> String {
    let turns = budget.max_turns.map(|limit| format!("{} of {limit} turns", budget.turns));
    let with_limit = |count: u64, limit: Option<u64>, format: fn(u64) -> String| match limit {
        Some(limit) => Some(format!("{} of {}", format(count), format(limit))),
        None => (count > 0).then(|| format(count)),
    };
    let tokens = with_limit(budget.usage.tokens, budget.max_tokens, format_count)
        .map(|count| format!("{count} tokens"));
    let cost = with_limit(budget.usage.microdollars, budget.max_microdollars, format_dollars);
    let exhausted = budget.exhausted_reason.as_ref().map(|reason| format!("stopped: {reason}"));
    // The most important part comes first, because the line may be cut off.
    [exhausted, turns, time, tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
