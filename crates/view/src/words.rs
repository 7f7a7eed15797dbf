//! Messages in words.

use protocol::control::BudgetStatus;
use protocol::payload::{IdleNotification, Payload, PermissionOutcome};
use protocol::usage::{format_count, format_dollars};

/// What a message's text says: as it stands, or in words where it is a payload.
pub fn said(text: &str) -> String {
    match Payload::parse(text) {
        Some(payload) => told(&payload),
        None => text.to_owned(),
    }
}

/// On one line.
pub fn flat(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What a payload says, in words.
fn told(payload: &Payload) -> String {
    use Payload as P;
    match payload {
        P::IdleNotification(idle) => words("is idle", &how_it_ended(idle)),
        P::TaskAssignment(task) => words(&format!("task {} is yours", task.task_id), &task.subject),
        P::TaskCompleted(task) => words(&format!("task {} is completed", task.task_id), &task.task_subject),
        P::ShutdownRequest(request) => {
            let asked = format!("asks for a shutdown, request {}", request.request_id);
            words(&asked, request.reason.as_deref().unwrap_or_default())
        }
        P::ShutdownApproved(yes) => format!("approves the shutdown, request {}", yes.request_id),
        P::ShutdownRejected(no) => {
            words(&format!("rejects the shutdown, request {}", no.request_id), &no.reason)
        }
        P::PlanApprovalRequest(plan) => {
            format!("hands in a plan, request {}\n{}", plan.request_id, plan.plan_content)
        }
        P::PlanApprovalResponse(answer) => {
            let word = if answer.approved { "approves" } else { "rejects" };
            let feedback = answer.feedback.as_deref().unwrap_or_default();
            words(&format!("{word} the plan, request {}", answer.request_id), feedback)
        }
        P::PermissionRequest(request) => {
            let asked = format!("asks to use {}, request {}", request.tool_name, request.request_id);
            words(&asked, &request.description)
        }
        P::PermissionResponse(answer) => match &answer.outcome {
            PermissionOutcome::Success { .. } => format!("permits it, request {}", answer.request_id),
            PermissionOutcome::Error { error } => {
                words(&format!("does not permit it, request {}", answer.request_id), error)
            }
        },
        P::ModeSetRequest(request) => format!("sets the permission mode to {}", request.mode),
        P::TeamPermissionUpdate(update) => words("changes the team's permissions", &update.tool_name),
        P::TeammateTerminated(end) => end.message.clone(),
    }
}

fn how_it_ended(idle: &IdleNotification) -> String {
    let status = idle.completed_status.as_deref().unwrap_or("completed");
    let task = idle.completed_task_id.as_ref().map(|id| format!("task {id} {status}"));
    let detail = [task.as_ref(), idle.summary.as_ref(), idle.failure_reason.as_ref()];
    detail.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn words(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

/// In one unit.
pub fn span(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

/// How much of its time is over, `2h of 8h`, where that has an end.
pub fn time_used(budget: &BudgetStatus, now: u64) -> Option<String> {
    budget
        .max_time_ms
        .map(|most| format!("{} of {}", span(now.saturating_sub(budget.started_at)), span(most)))
}

/// What a team has used up: `12 of 200 turns, 2h of 8h, 12.3k of 5.0M tokens, $0.42`. What is said of its time is `time`.
pub fn used(budget: &BudgetStatus, time: Option<String>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        assert_eq!([quoted("ann@t"), quoted("a b"), quoted("")], ["ann@t", "'a b'", "''"]);
        assert_eq!(quoted("a'b; rm -r ~"), r"'a'\''b; rm -r ~'");
    }
}
