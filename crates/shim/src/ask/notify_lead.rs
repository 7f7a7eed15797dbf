//! Notifies the lead that its ask in the background has ended.

use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{Payload, TaskNotification, TaskNotificationStatus};
use protocol::state_file_names::ASKS_DIR;
use protocol::team_and_member_names::MemberName;
use protocol::teamctl_ask_setup_and_record::{AskLeadInbox, AskOutcome, AskRecord, AskState};
use std::path::{Path, PathBuf};
use store::{Durability, Root, env_var, now};

/// How much of the answer the message contains at most, in characters.
const ANSWER_CHARS: usize = 200;

/// Notifies the lead that the ask has ended: appends a message to the lead's inbox. The sender of
/// the message is the id of the ask.
///
/// # Errors
///
/// If the team does not exist any more, or if its inbox cannot be written.
pub(super) fn notify_lead(
    state_dir: &Path,
    lead: &AskLeadInbox,
    record: &AskRecord,
) -> Result<(), ErrorReport> {
    let output_file = state_dir.join(ASKS_DIR).join(record.id.file_name());
    let Some(notification) = notification(record, output_file) else { return Ok(()) };
    let durability = Durability::from_env_value(env_var("TEAMD_DURABILITY").as_deref())?;
    let team = Root::open(&lead.root, state_dir, durability)?.team(&lead.team)?;
    let sender = MemberName::new_unchecked(&record.id.to_string());
    let message = Message::new(&sender, Payload::TaskNotification(notification).to_text(), now());
    Ok(team.inbox(&MemberName::lead()).append(&message)?)
}

/// The report of an ask. `None` while it runs.
fn notification(record: &AskRecord, output_file: PathBuf) -> Option<TaskNotification> {
    use TaskNotificationStatus::{Completed, Failed, Killed};
    let id = &record.id;
    let AskState::Ended { outcome, answer, .. } = &record.state else { return None };
    let (status, message) = match outcome {
        AskOutcome::Answered => {
            let line: String =
                answer.trim_start().lines().next().unwrap_or_default().chars().take(ANSWER_CHARS).collect();
            (Completed, format!("{id} has answered; teamctl wait {id} prints the answer: {line}"))
        }
        AskOutcome::Failed { reason } => (Failed, format!("{id} has failed: {reason}")),
        AskOutcome::NotStarted { reason } => (Failed, format!("{id} was not started: {reason}")),
        AskOutcome::TimedOut => (Failed, format!("{id} has no answer: its timeout has expired")),
        AskOutcome::Interrupted => (Killed, format!("{id} has no answer: it was ended")),
    };
    let message = match &record.worktree {
        Some(worktree) => {
            format!("{message}\nits worktree: {}, branch {}", worktree.path.display(), worktree.branch)
        }
        None => message,
    };
    Some(TaskNotification { task_id: id.to_string(), output_file, status, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::teamctl_ask_setup_and_record::{AskId, AskedOptions};

    fn notify(outcome: AskOutcome, answer: &str) -> (TaskNotificationStatus, String) {
        let record = AskRecord {
            id: AskId::new(1),
            options: AskedOptions::default(),
            prompt: String::new(),
            started_at: 1,
            shim: None,
            session_id: None,
            worktree: None,
            state: AskState::Ended { outcome, answer: answer.to_owned(), usage: None, ended_at: 2 },
        };
        let notification = notification(&record, PathBuf::from("/x")).unwrap();
        (notification.status, notification.message)
    }

    #[test]
    fn message_has_the_first_line_of_the_answer_or_the_reason() {
        let (status, text) = notify(AskOutcome::Answered, &format!("{}\nsecond", "é".repeat(300)));
        assert_eq!(status, TaskNotificationStatus::Completed);
        assert!(text.contains("teamctl wait ask-00000001") && !text.contains("second"), "{text}");
        assert_eq!(text.matches('é').count(), ANSWER_CHARS);
        let (status, text) = notify(AskOutcome::Failed { reason: "exit 2".to_owned() }, "");
        assert_eq!(
            (status, text.as_str()),
            (TaskNotificationStatus::Failed, "ask-00000001 has failed: exit 2")
        );
        assert_eq!(notify(AskOutcome::TimedOut, "").0, TaskNotificationStatus::Failed);
        assert_eq!(notify(AskOutcome::Interrupted, "").0, TaskNotificationStatus::Killed);
    }
}
