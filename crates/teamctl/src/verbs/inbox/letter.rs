//! One entry of an inbox, as JSON and for people. The JSON is the entry as it is on disk, where that can be
//! said on one line in valid JSON, else what we understood of it; an entry that is no message says why.

use crate::output::{clean, paint};
use protocol::json::whole_pairs;
use protocol::message::{Entry, Message};
use protocol::payload::{Payload, PermissionOutcome};
use serde_json::{Value, json};

/// The entry with its `index` and `kind`; the kind of plain text is `message`.
pub(super) fn object(entry: &Entry) -> Value {
    let mut object = as_it_is(entry);
    object["index"] = json!(entry.index);
    match &entry.message {
        Ok(message) => object["kind"] = json!(kind(message)),
        Err(fault) => {
            object["kind"] = json!("fault");
            object["fault"] = json!(fault.to_string());
        }
    }
    object
}

fn as_it_is(entry: &Entry) -> Value {
    match (serde_json::from_str(&whole_pairs(&entry.raw)), &entry.message) {
        (Ok(object @ Value::Object(_)), _) => object,
        (_, Ok(message)) => json!(message),
        (_, Err(_)) => json!({"raw": entry.raw}),
    }
}

fn kind(message: &Message) -> &'static str {
    Payload::parse(&message.text).map_or("message", |payload| payload.kind())
}

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

    fn of(raw: &str) -> Value {
        object(&Entry::of(3, raw))
    }

    #[test]
    fn an_entry_keeps_its_fields_and_gets_index_and_kind() {
        let entry = of(r#"{"from":"a","text":"hi","timestamp":"t","msgV":1}"#);
        assert_eq!(
            entry,
            json!({"from":"a","text":"hi","timestamp":"t","msgV":1,"index":3,"kind":"message"})
        );
    }

    #[test]
    fn what_no_json_value_can_hold_is_told_as_understood() {
        let entry = of(r#"{"from":"a","text":"hi","timestamp":"t","x":1e999}"#);
        assert_eq!((&entry["text"], &entry["read"]), (&json!("hi"), &json!(false)));
        let entry = of("null");
        assert_eq!((&entry["kind"], &entry["raw"]), (&json!("fault"), &json!("null")));
    }

    #[test]
    fn no_text_can_steer_the_terminal_or_pass_for_a_head() {
        let entry = Entry::of(0, r#"{"from":"a\u001b[2J","text":"x\n* boss","timestamp":"t\n* boss"}"#);
        let shown = sentence(&entry);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown}");
    }
}
