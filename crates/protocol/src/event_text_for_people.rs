//! Events of the event log as lines for people, without time and control characters.

use crate::escape_control_chars::visible;
use crate::event_log_line::{Event, EventKind};
use crate::inbox_message_payload::IdleReason;
use crate::team_and_member_names::MemberName;
use std::fmt;

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::DaemonReady { pid, root } => write!(f, "ready: pid {pid}, root {}", root.display()),
            EventKind::DaemonStopped { reason } => write!(f, "stops: {reason}"),
            EventKind::TeamCreated => f.write_str("created"),
            EventKind::TeamDeleted => f.write_str("deleted"),
            EventKind::MemberSpawned { pid, pane } => write!(f, "spawned: pid {pid}, pane {pane}"),
            EventKind::MemberSpawnFailed { reason } => write!(f, "not spawned: {reason}"),
            EventKind::MemberAdopted { pid } => write!(f, "adopted: pid {pid}"),
            EventKind::MemberActive { summary } if summary.is_empty() => f.write_str("active"),
            EventKind::MemberActive { summary } => write!(f, "active: {summary}"),
            EventKind::MemberIdle { reason: Some(IdleReason::Failed) } => {
                f.write_str("idle after a failed turn")
            }
            EventKind::MemberIdle { .. } => f.write_str("idle"),
            EventKind::MemberUsage { used, total } => write!(f, "has used {used}, in all {total}"),
            EventKind::MemberAtDialog { text } => write!(f, "waits at a dialog: {text}"),
            EventKind::BudgetExhausted { reason } => write!(f, "is stopped: {reason}"),
            EventKind::NotificationFailed { reason } => write!(f, "a notification failed: {reason}"),
            EventKind::HostConnected { host } => write!(f, "host {host} is connected"),
            EventKind::HostLost { host, reason } => write!(f, "no contact to host {host}: {reason}"),
            EventKind::HomeMoved { host, epoch } => {
                write!(f, "its home is {} now (epoch {epoch})", host.as_deref().unwrap_or("here"))
            }
            EventKind::TeamReplaced { copy } => {
                write!(f, "the files of its home replaced those here, which are kept in {copy}")
            }
            EventKind::HostForgotten { host } => write!(f, "host {host} is forgotten"),
            EventKind::LeadSessionEnded => f.write_str("has lost its lead: the leading session ended"),
            EventKind::MemberNoOutput { no_output_ms } => {
                write!(f, "has written nothing for {} s", no_output_ms / 1_000)
            }
            EventKind::MemberTurnsFailed { failed_turns, reason, next_turn_at } => {
                let next = if next_turn_at.is_some() { "after a pause" } else { "at a message" };
                write!(f, "{failed_turns} turns in a row failed ({reason}), the next one starts {next}")
            }
            EventKind::MemberLimited { local_time, reason, .. } => {
                write!(f, "is limited until {local_time} ({reason})")
            }
            EventKind::MemberExchangePaused { with, turns, within_ms, .. } => {
                let minutes = within_ms / 60_000;
                write!(
                    f,
                    "answered {with} in {turns} turns within {minutes} min; more messages from {with} wait"
                )
            }
            EventKind::MemberTurnsHeld { .. } => {
                f.write_str("begins no turn until the home of its team has contact again")
            }
            EventKind::MemberInterrupted => f.write_str("interrupted"),
            EventKind::MemberExited { outcome, description } => {
                write!(f, "ended, {outcome}: {description}")
            }
            EventKind::MemberRespawnScheduled { attempt, delay_ms } => {
                let when = match delay_ms {
                    0 => "at once".to_owned(),
                    _ => format!("in {delay_ms} ms"),
                };
                write!(f, "starts again {when} (restart {attempt})")
            }
            EventKind::MemberRespawnsExhausted { reason } => write!(f, "is not started again: {reason}"),
            EventKind::MemberSuspended => f.write_str("is suspended"),
            EventKind::ShutdownRequested { request_id } => {
                write!(f, "asked to shut down: {request_id}")
            }
            EventKind::ShutdownRejected { reason } => write!(f, "will not shut down: {reason}"),
            EventKind::RequestOpened { request_id, summary, .. } => {
                write!(f, "{summary}, and waits for the answer: {request_id}")
            }
            EventKind::RequestAnswered { request_id, approved: true, answered_by } => {
                write!(f, "was approved by {}: {request_id}", answered_by.as_str())
            }
            EventKind::RequestAnswered { request_id, approved: false, answered_by } => {
                write!(f, "was denied by {}: {request_id}", answered_by.as_str())
            }
            EventKind::RequestWithdrawn { request_id } => {
                write!(f, "waits no longer for the answer to {request_id}")
            }
            EventKind::ModeSet { mode } => write!(f, "is in the mode {mode} now"),
            EventKind::TaskCreated { task, subject } => write!(f, "task {task} created: {subject}"),
            EventKind::TaskStarted { task, subject, owner } => {
                write!(f, "task {task} started{}: {subject}", by_owner(owner))
            }
            EventKind::TaskCompleted { task, subject, owner } => {
                write!(f, "task {task} completed{}: {subject}", by_owner(owner))
            }
            EventKind::TaskFailed { task, subject, owner, reason } => {
                write!(f, "task {task} failed{} ({reason}): {subject}", by_owner(owner))
            }
            EventKind::TaskReleased { task, subject } => write!(f, "task {task} released: {subject}"),
            EventKind::TaskAbandoned { task, subject, owner } => {
                write!(f, "task {task} left by {owner}: {subject}")
            }
            EventKind::TaskUpdated { task, subject, .. } => write!(f, "task {task} changed: {subject}"),
            EventKind::TaskDeleted { task } => write!(f, "task {task} deleted"),
            EventKind::MessageStored { from, kind, summary: Some(summary), .. } => {
                write!(f, "has {kind} from {from}: {summary}")
            }
            EventKind::MessageStored { from, kind, summary: None, .. } => write!(f, "has {kind} from {from}"),
            EventKind::MessageRead { unread } => write!(f, "has read: {unread} unread"),
            EventKind::MessageRestored { from, kind, .. } => {
                write!(f, "has {kind} from {from} again: another program had dropped it")
            }
            EventKind::Error { message } => write!(f, "error: {message}"),
        }
    }
}

fn by_owner(owner: &Option<MemberName>) -> String {
    owner.as_ref().map_or_else(String::new, |owner| format!(" by {owner}"))
}

impl Event {
    /// The event as one line for people, without the time and without control characters.
    pub fn to_text(&self) -> String {
        let subject = match (&self.team, &self.member) {
            (Some(team), Some(agent)) => format!("{agent}@{team} "),
            (Some(team), None) => format!("{team} "),
            _ => String::new(),
        };
        let host = self.on_host.as_ref().map_or_else(String::new, |host| format!("({host}) "));
        let help = match (&self.kind, &self.team) {
            (EventKind::MemberSuspended, Some(team)) => {
                format!("; resume it with: teamctl up --resume -t {team}")
            }
            _ => String::new(),
        };
        visible(&format!("{subject}{host}{}{help}", self.kind)).replace('\n', " ")
    }
}
