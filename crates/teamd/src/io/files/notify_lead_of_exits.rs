//! Sends the lead a message about each member whose agent has exited.

use crate::core::exit_record::ReportTo;
use crate::core::roster::agent_record::AgentRecord;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{Payload, TeammateTerminated};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use std::collections::HashSet;
use std::sync::Arc;
use store::{Error, Team};

/// Sends the lead one message for each member that has exited.
///
/// The daemon may have crashed after an earlier call, and may call this function again for the same
/// exits. A message that is in the lead's inbox already is not sent again. It is recognized by its
/// sender and the time of the exit.
pub(super) fn notify_lead(team: &Team, records: &[&AgentRecord]) -> Result<(), Error> {
    let is_reported = |record: &&&AgentRecord| {
        record.lifecycle.exit().is_some_and(|exit| exit.report_to != ReportTo::Nobody)
    };
    let records: Vec<&AgentRecord> = records.iter().filter(is_reported).copied().collect();
    if records.is_empty() {
        return Ok(());
    }
    let tasks = team.tasks().list_cached().unwrap_or_default();
    let messages: Vec<Message> = records.iter().filter_map(|record| exit_message(record, &tasks)).collect();
    let inbox = team.inbox(&MemberName::lead());
    // The texts are not compared: the list of unfinished tasks may have changed since the crash.
    let sent = inbox.fold(|sent: &mut HashSet<(String, String)>, entry| {
        let message = entry.message.ok();
        let message = message.filter(|message| messages.iter().any(|new| new.timestamp == message.timestamp));
        let exit = message
            .filter(|message| matches!(Payload::parse(&message.text), Some(Payload::TeammateTerminated(_))));
        sent.extend(exit.map(|message| (message.from, message.timestamp)));
    })?;
    let is_sent = |message: &Message| sent.contains(&(message.from.clone(), message.timestamp.clone()));
    let unsent: Vec<Message> = messages.into_iter().filter(|message| !is_sent(message)).collect();
    if unsent.is_empty() { Ok(()) } else { inbox.append_all(&unsent) }
}

/// The message to the lead about the exit of a member. `None` if the record has no exit.
fn exit_message(record: &AgentRecord, tasks: &[Arc<Task>]) -> Option<Message> {
    let exit = record.lifecycle.exit()?;
    let next_step = exit.next_step.as_ref().map(|step| format!("; {step}")).unwrap_or_default();
    let message = format!(
        "{} has ended: {}{next_step}{}",
        record.request.name,
        exit.description,
        list_unfinished_tasks(tasks, record)
    );
    let payload = Payload::TeammateTerminated(TeammateTerminated { message });
    let message = Message::new(&record.request.name, payload.to_text(), exit.ended_at);
    Some(Message { color: record.color.map(|color| color.to_string()), ..message })
}

/// Returns a clause for the message to the lead: the tasks that an exited member left in progress.
/// Returns an empty string if there are none.
fn list_unfinished_tasks(tasks: &[Arc<Task>], record: &AgentRecord) -> String {
    let is_unfinished = |task: &&Arc<Task>| {
        task.status == TaskStatus::InProgress
            && !task.is_internal()
            && task.failure().is_none()
            && task.owner.as_ref() == Some(&record.request.name)
    };
    let unfinished: Vec<String> =
        tasks.iter().filter(is_unfinished).map(|task| format!("{} ({})", task.id, task.subject)).collect();
    if unfinished.is_empty() {
        String::new()
    } else {
        format!("; left in progress: {}", unfinished.join(", "))
    }
}
