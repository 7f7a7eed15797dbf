//! Messages in words.

use protocol::control::BudgetStatus;
use protocol::payload::{IdleNotification, Payload, PermissionOutcome};
use protocol::usage::{format_count, format_dollars};

/// What a message's text says: as it stands, or in words where it is a payload.
pub fn message_text(text: &str) -> String {
    match Payload::parse(text) {
        Some(payload) => payload_text(&payload),
        None => text.to_owned(),
    }
}

/// What a payload says, in words.
fn payload_text(payload: &Payload) -> String {
    use Payload as P;
    match payload {
        P::IdleNotification(idle) => with_detail("is idle", &idle_details(idle)),
        P::TaskAssignment(task) => with_detail(&format!("task {} is yours", task.task_id), &task.subject),
        P::TaskCompleted(task) => {
            with_detail(&format!("task {} is completed", task.task_id), &task.task_subject)
        }
        P::ShutdownRequest(request) => {
            let asked = format!("asks for a shutdown, request {}", request.request_id);
            with_detail(&asked, request.reason.as_deref().unwrap_or_default())
        }
        P::ShutdownApproved(yes) => format!("approves the shutdown, request {}", yes.request_id),
        P::ShutdownRejected(no) => {
            with_detail(&format!("rejects the shutdown, request {}", no.request_id), &no.reason)
        }
        P::PlanApprovalRequest(plan) => {
            format!("hands in a plan, request {}\n{}", plan.request_id, plan.plan_content)
        }
        P::PlanApprovalResponse(answer) => {
            let word = if answer.approved { "approves" } else { "rejects" };
            let feedback = answer.feedback.as_deref().unwrap_or_default();
            with_detail(&format!("{word} the plan, request {}", answer.request_id), feedback)
        }
        P::PermissionRequest(request) => {
            let asked = format!("asks to use {}, request {}", request.tool_name, request.request_id);
            with_detail(&asked, &request.description)
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

/// In one unit.
pub fn short_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

/// How much of its time is over, `2h of 8h`, where that has an end.
pub fn time_budget_text(budget: &BudgetStatus, now: u64) -> Option<String> {
    budget.max_time_ms.map(|most| {
        format!("{} of {}", short_duration(now.saturating_sub(budget.started_at)), short_duration(most))
    })
}

/// What a team has used up: `12 of 200 turns, 2h of 8h, 12.3k of 5.0M tokens, $0.42`. What is said of its time is `time`.
pub fn budget_text(budget: &BudgetStatus, time: Option<String>) -> String {
    let turns = budget.max_turns.map(|most| format!("{} of {most} turns", budget.turns));
    let of = |count: u64, most: Option<u64>, words: fn(u64) -> String| match most {
        Some(most) => Some(format!("{} of {}", words(count), words(most))),
        None => (count > 0).then(|| words(count)),
    };
    let tokens =
        of(budget.usage.tokens, budget.max_tokens, format_count).map(|count| format!("{count} tokens"));
    let cost = of(budget.usage.microdollars, budget.max_microdollars, format_dollars);
    let spent = budget.exhausted_reason.as_ref().map(|why| format!("stopped: {why}"));
    // First what is to be seen wherever the line is cut.
    [spent, turns, time, tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
