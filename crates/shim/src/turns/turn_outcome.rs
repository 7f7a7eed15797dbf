//! What the end of a turn means, for the task it was about and for the lead: pure.

use super::executor::{TurnEndKind, TurnResult};
use protocol::control::ExitReport;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::payload::{IdleNotification, IdleReason};
use protocol::task::{Task, TaskStatus};
use protocol::timestamp::iso8601;
use std::process::ExitStatus;
use store::now;

/// Characters of the last line that a task's metadata keeps.
const LAST_LINE_CHARS: usize = 160;

/// How a turn went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnOutcome {
    pub(super) reason: IdleReason,
    /// `exit 1: ` and the last line, for the task's metadata; none where it went well.
    pub(super) short_failure: Option<String>,
    /// `exit 1: ` and the last lines, for the lead.
    pub(super) full_failure: Option<String>,
}

/// What becomes of the task of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TaskSettlement {
    /// It is done, and to be marked so.
    MarkCompleted,
    /// It failed, and is to be marked so.
    MarkFailed(String),
    /// The agent has said so itself.
    AlreadyCompleted,
    /// The agent has said so itself, and why.
    AlreadyFailed(String),
    /// It is not the agent's any more: given back, taken away, deleted.
    NotOwned,
}

pub(super) fn turn_outcome(end: &TurnResult) -> TurnOutcome {
    let (reason, failure) = match &end.end {
        TurnEndKind::Exited(status) => match exit_failure(*status) {
            None => (IdleReason::Available, None),
            Some(why) => (IdleReason::Failed, Some(why)),
        },
        TurnEndKind::Completed => (IdleReason::Available, None),
        TurnEndKind::NotStarted(why) | TurnEndKind::Failed(why) => (IdleReason::Failed, Some(why.clone())),
        TurnEndKind::Interrupted => (IdleReason::Interrupted, Some("interrupted".to_owned())),
    };
    let at_length = match (&failure, reason) {
        (Some(why), IdleReason::Failed) if !end.last.is_empty() => Some(format!("{why}: {}", end.last)),
        (failure, IdleReason::Failed) => failure.clone(),
        _ => None,
    };
    let failure = failure.map(|why| match last_line(&end.last) {
        Some(line) if reason == IdleReason::Failed => format!("{why}: {line}"),
        _ => why,
    });
    TurnOutcome { reason, short_failure: failure, full_failure: at_length }
}

/// Cut where it is longer than a table takes.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LAST_LINE_CHARS).collect())
}

/// What becomes of a task after a turn on it. `task` is the task as it is now, `None` if it was
/// deleted.
pub(super) fn settle(task: Option<&Task>, me: &AgentName, outcome: &TurnOutcome) -> TaskSettlement {
    let Some(task) = task else { return TaskSettlement::NotOwned };
    match (&task.status, &task.owner) {
        (TaskStatus::Completed, _) => TaskSettlement::AlreadyCompleted,
        (TaskStatus::InProgress, Some(owner)) if owner == me => {
            match (task.failure(), &outcome.short_failure) {
                (Some(why), _) => TaskSettlement::AlreadyFailed(why.to_owned()),
                (None, Some(why)) => TaskSettlement::MarkFailed(why.clone()),
                (None, None) => TaskSettlement::MarkCompleted,
            }
        }
        _ => TaskSettlement::NotOwned,
    }
}

impl TaskSettlement {
    /// `completedStatus` and `failureReason` of the notification.
    pub(super) fn notification_fields(&self) -> Option<(&'static str, Option<&str>)> {
        match self {
            TaskSettlement::MarkCompleted | TaskSettlement::AlreadyCompleted => Some(("completed", None)),
            TaskSettlement::MarkFailed(why) | TaskSettlement::AlreadyFailed(why) => {
                Some(("failed", Some(why)))
            }
            TaskSettlement::NotOwned => None,
        }
    }
}

/// The message that tells the lead that a turn has ended.
///
/// `task` is the task of the turn and what became of it. `failure` is why the turn failed; without
/// it the reason of a failed task is sent.
pub(super) fn idle_notification(
    member: &AgentName,
    reason: IdleReason,
    summary: Option<String>,
    task: Option<(TaskId, &TaskSettlement)>,
    failure: Option<String>,
) -> IdleNotification {
    let task = task.and_then(|(id, settlement)| Some((id, settlement.notification_fields()?)));
    let task_failure = task.and_then(|(_, (_, reason))| reason.map(str::to_owned));
    IdleNotification {
        from: member.to_string(),
        timestamp: iso8601(now()),
        idle_reason: reason,
        summary,
        completed_task_id: task.map(|(id, _)| id.to_string()),
        completed_status: task.map(|(_, (status, _))| status.to_owned()),
        failure_reason: failure.or(task_failure),
    }
}

fn exit_failure(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| ExitReport::from_status(status).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn ended(how: TurnEndKind, last: &str) -> TurnOutcome {
        turn_outcome(&TurnResult { end: how, last: last.to_owned(), used: None })
    }

    fn exit(code: i32) -> TurnEndKind {
        TurnEndKind::Exited(ExitStatus::from_raw(code << 8))
    }

    fn task(status: &str, owner: &str, metadata: &str) -> Task {
        let text = format!(
            r#"{{"id":"3","subject":"s","status":"{status}","owner":"{owner}","metadata":{metadata}}}"#
        );
        Task::parse(&text).unwrap()
    }

    #[test]
    fn a_failure_is_told_short_to_the_task_and_at_length_to_the_lead() {
        let bad = ended(exit(7), "cannot\nfind x");
        assert_eq!(bad.short_failure.as_deref(), Some("exit 7: find x"));
        assert_eq!(bad.full_failure.as_deref(), Some("exit 7: cannot\nfind x"));
        assert_eq!(ended(exit(7), "").full_failure.as_deref(), Some("exit 7"));
        let killed = ended(TurnEndKind::Exited(ExitStatus::from_raw(9)), "");
        assert_eq!((killed.reason, killed.short_failure.as_deref()), (IdleReason::Failed, Some("signal 9")));
        assert_eq!(ended(exit(0), "noise").full_failure, None);
        assert_eq!(
            ended(TurnEndKind::NotStarted("no command".into()), "").full_failure.as_deref(),
            Some("no command")
        );
    }

    #[test]
    fn a_task_ends_as_its_turn_unless_somebody_has_said_more() {
        let me = AgentName::parse("ann").unwrap();
        let of = |task: Option<Task>, how: TurnEndKind| settle(task.as_ref(), &me, &ended(how, ""));
        let mine = || Some(task("in_progress", "Ann", "{}"));
        assert_eq!(of(mine(), exit(0)), TaskSettlement::MarkCompleted);
        assert_eq!(of(mine(), exit(1)), TaskSettlement::MarkFailed("exit 1".into()));
        assert_eq!(of(mine(), TurnEndKind::Interrupted), TaskSettlement::MarkFailed("interrupted".into()));
        let said = Some(task("in_progress", "ann", r#"{"failure":"no access"}"#));
        assert_eq!(of(said, exit(0)), TaskSettlement::AlreadyFailed("no access".into()));
        assert_eq!(of(Some(task("completed", "ann", "{}")), exit(1)), TaskSettlement::AlreadyCompleted);
        assert_eq!(of(Some(task("pending", "", "{}")), exit(0)), TaskSettlement::NotOwned);
        assert_eq!(of(Some(task("in_progress", "bob", "{}")), exit(1)), TaskSettlement::NotOwned);
        assert_eq!(of(None, exit(0)), TaskSettlement::NotOwned);
    }
}
