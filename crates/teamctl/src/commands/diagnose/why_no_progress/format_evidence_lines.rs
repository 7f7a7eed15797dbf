//! Formats evidence that several causes share, one line each.

use super::member_evidence::MemberEvidence;
use super::probe_servers_processes_and_disks::ServerState;
use super::task_waits_and_unfinished_tasks::unfinished_task;
use client::short_duration::short_duration;
use protocol::task::Task;
use protocol::timestamp::iso8601;

/// For events that are older than this, in ms, the date is printed too.
const DATE_AFTER_MS: u64 = 43_200_000;

/// Appends `event_time` to `text`, as a time of day and as an age: `ended 05:10:01 UTC, 3m ago`.
/// `event_time` is in ms since the epoch. If `event_time` is 0, the time is unknown and nothing is
/// appended.
pub(super) fn with_time(text: &str, event_time: u64, evidence: &MemberEvidence) -> String {
    if event_time == 0 {
        return text.trim_end_matches(',').to_owned();
    }
    let timestamp = iso8601(event_time);
    let (day, time) = (timestamp.get(..10).unwrap_or_default(), timestamp.get(11..19).unwrap_or_default());
    let age = evidence.now.saturating_sub(event_time);
    let date = if age >= DATE_AFTER_MS { format!("{day} ") } else { String::new() };
    format!("{text} {date}{time} UTC, {} ago", short_duration(age))
}

/// `1 message`, `2 messages`.
pub(super) fn count_noun(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Why the daemon counts the member as active or idle, and since when.
pub(super) fn activity_line(evidence: &MemberEvidence) -> Option<String> {
    let agent = evidence.agent.as_ref()?;
    Some(with_time(&format!("{}; since", agent.activity_reason), agent.activity_since, evidence))
}

/// The state of a server that does not answer.
pub(super) fn server_line(server: &ServerState) -> String {
    match server {
        ServerState::Unresponsive { pid: Some(pid), stopped: true } => {
            format!("its process {pid} is stopped")
        }
        ServerState::Unresponsive { pid: Some(pid), .. } => {
            format!("its process {pid} takes connections, and says nothing")
        }
        _ => "it can't be asked".to_owned(),
    }
}

/// `task 3 (count the lines), which is ann's`.
pub(super) fn task_label(task: &Task) -> String {
    match &task.owner {
        Some(owner) => format!("task {} ({}), which is {owner}'s", task.id, task.subject),
        None => format!("task {} ({})", task.id, task.subject),
    }
}

/// The task that the member had in progress when it exited.
pub(super) fn abandoned_task_line(evidence: &MemberEvidence) -> Option<String> {
    unfinished_task(&evidence.tasks, &evidence.name).map(|task| format!("it left {}", task_label(task)))
}
