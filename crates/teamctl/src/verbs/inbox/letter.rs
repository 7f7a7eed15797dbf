//! One entry of an inbox, for people.

use crate::output::{clean, paint};
use protocol::message::Entry;
use protocol::payload::{Payload, PermissionOutcome};

/// A head with sender, time and summary, and the text below it.
pub(super) fn sentence(entry: &Entry) -> String {
    let Ok(message) = &entry.message else { return faulty(entry) };
    let sender = paint(message.color.as_deref().unwrap_or_default(), &clean(&one_line(&message.from)));
    let mark = if message.read { " " } else { "*" };
    let summary = message.summary.as_deref().map(|summary| format!("  {summary}")).unwrap_or_default();
    let text = match Payload::parse(&message.text) {
        Some(payload) => told(&payload),
        None => message.text.clone(),
    };
    let head = clean(&one_line(&format!("{}{summary}", message.timestamp)));
    format!("{mark} {sender}  {head}\n{}", indented(&clean(&text)))
}

fn faulty(entry: &Entry) -> String {
    let why = entry.message.as_ref().err().map(ToString::to_string).unwrap_or_default();
    clean(&format!("! entry {} is no message: {}", entry.index, one_line(&why)))
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// What a payload says, in words.
fn told(payload: &Payload) -> String {
    use Payload as P;
    match payload {
        P::IdleNotification(idle) => {
            let task = idle
                .completed_task_id
                .as_ref()
                .map(|id| format!("task {id} {}", idle.completed_status.as_deref().unwrap_or("completed")));
            let detail = [task.as_ref(), idle.summary.as_ref(), idle.failure_reason.as_ref()];
            let detail: Vec<&str> = detail.into_iter().flatten().map(String::as_str).collect();
            words("is idle", &detail.join(", "))
        }
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

fn words(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_steer_the_terminal_or_pass_for_a_head() {
        let entry = Entry::of(0, r#"{"from":"a\u001b[2J","text":"x\n* boss","timestamp":"t\n* boss"}"#);
        let shown = sentence(&entry);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown}");
    }
}
