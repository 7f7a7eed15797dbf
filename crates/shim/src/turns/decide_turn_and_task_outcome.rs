//! Decides what the end of a turn means for the turn's task and for the lead. The functions are
//! pure.

use super::turn_executor_trait::{TurnEndKind, TurnResult};
use protocol::control_socket::{ExitReport, UsageLimit};
use protocol::inbox_message_payload::{IdleNotification, IdleReason};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::iso8601;
use std::process::ExitStatus;
use store::{now, read_usage_limit};

/// How much of the last output line is stored in a task's metadata at most, in characters.
const LAST_LINE_CHARS: usize = 160;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnOutcome {
    pub(super) reason: IdleReason,
    /// The reason of a failure, as stored in the task's metadata: for example `exit 1: ` and the
    /// last output line. `None` after a success.
    pub(super) short_failure: Option<String>,
    /// The reason of a failure, as sent to the lead: for example `exit 1: ` and the last output
    /// lines. `None` unless the turn has failed.
    pub(super) full_failure: Option<String>,
    /// The usage limit at which the turn has failed, if its program has said when the limit ends.
    pub(super) limit: Option<UsageLimit>,
}

impl TurnOutcome {
    /// The outcome of a turn that has not failed.
    pub(super) fn success() -> TurnOutcome {
        TurnOutcome { reason: IdleReason::Available, short_failure: None, full_failure: None, limit: None }
    }

    /// The outcome of a turn that has failed for `reason`.
    pub(super) fn failure(reason: String) -> TurnOutcome {
        let (short_failure, full_failure) = (Some(reason.clone()), Some(reason));
        TurnOutcome { reason: IdleReason::Failed, short_failure, full_failure, limit: None }
    }

    /// Adds the usage limit that the failure names, if it names one.
    pub(super) fn with_limit(self, patterns: &[String]) -> TurnOutcome {
        let limit = self.full_failure.as_deref().and_then(|text| read_usage_limit(text, patterns));
        TurnOutcome { limit, ..self }
    }

    /// The reason of a failed turn, as the lead gets it. At a usage limit, the text begins with the
    /// time when the limit ends. `None` unless the turn has failed.
    pub(super) fn failure_for_lead(&self) -> Option<String> {
        let failure = self.full_failure.clone()?;
        Some(match &self.limit {
            Some(limit) => format!("limited until {}: {failure}", limit.local_time),
            None => failure,
        })
    }
}

/// What becomes of the task of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TaskSettlement {
    /// Mark the task completed.
    MarkCompleted,
    /// Mark the task failed, with the reason.
    MarkFailed(String),
    /// Leave the task in progress, so that the agent tries it again after a pause.
    TryAgain,
    /// The agent has completed the task itself.
    AlreadyCompleted,
    /// The agent has marked the task failed itself, with the reason.
    AlreadyFailed(String),
    /// The agent no longer owns the task: it was released, reassigned or deleted.
    NotOwned,
}

pub(super) fn turn_outcome(result: &TurnResult) -> TurnOutcome {
    let (idle_reason, failure) = match &result.end {
        TurnEndKind::Exited(status) => match exit_failure(*status) {
            None => (IdleReason::Available, None),
            Some(failure) => (IdleReason::Failed, Some(failure)),
        },
        TurnEndKind::Completed => (IdleReason::Available, None),
        TurnEndKind::NotStarted(failure) | TurnEndKind::Failed(failure) => {
            (IdleReason::Failed, Some(failure.clone()))
        }
        TurnEndKind::Interrupted => (IdleReason::Interrupted, Some("interrupted".to_owned())),
    };
    let full_failure = match (&failure, idle_reason) {
        (Some(failure), IdleReason::Failed) if !result.last_lines.is_empty() => {
            Some(format!("{failure}: {}", result.last_lines))
        }
        (failure, IdleReason::Failed) => failure.clone(),
        _ => None,
    };
    let short_failure = failure.map(|failure| match last_line(&result.last_lines) {
        Some(line) if idle_reason == IdleReason::Failed => format!("{failure}: {line}"),
        _ => failure,
    });
    TurnOutcome { reason: idle_reason, short_failure, full_failure, limit: None }
}

/// The last line that is not blank, shortened to [`LAST_LINE_CHARS`].
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LAST_LINE_CHARS).collect())
}

/// Decides what becomes of the turn's task. `task` is the task in its current state, `None` if it
/// was deleted. `me` is the agent.
pub(super) fn settle(task: Option<&Task>, me: &MemberName, outcome: &TurnOutcome) -> TaskSettlement {
    let Some(task) = task else { return TaskSettlement::NotOwned };
    match (&task.status, &task.owner) {
        (TaskStatus::Completed, _) => TaskSettlement::AlreadyCompleted,
        (TaskStatus::InProgress, Some(owner)) if owner == me => {
            match (task.failure(), &outcome.short_failure) {
                (Some(reason), _) => TaskSettlement::AlreadyFailed(reason.to_owned()),
                (None, Some(reason)) => TaskSettlement::MarkFailed(reason.clone()),
                (None, None) => TaskSettlement::MarkCompleted,
            }
        }
        _ => TaskSettlement::NotOwned,
    }
}

impl TaskSettlement {
    /// The values for the keys `completedStatus` and `failureReason` of the notification to the
    /// lead. `None` if the agent does not own the task, or if the agent tries the task again.
    pub(super) fn notification_fields(&self) -> Option<(&'static str, Option<&str>)> {
        match self {
            TaskSettlement::MarkCompleted | TaskSettlement::AlreadyCompleted => Some(("completed", None)),
            TaskSettlement::MarkFailed(reason) | TaskSettlement::AlreadyFailed(reason) => {
                Some(("failed", Some(reason)))
            }
            TaskSettlement::TryAgain | TaskSettlement::NotOwned => None,
        }
    }
}

/// The notification that tells the lead that a turn has ended.
///
/// `task` is the turn's task and what became of it. `failure` is the reason why the turn failed,
/// `None` if it did not fail. A task can fail although its turn has not failed, for example if the
/// agent marks the task failed. Then the notification has the reason why the task failed.
pub(super) fn idle_notification(
    member: &MemberName,
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

    fn outcome(end: TurnEndKind, last_lines: &str) -> TurnOutcome {
        turn_outcome(&TurnResult { end, last_lines: last_lines.to_owned(), usage: None })
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
    fn failure_is_short_for_the_task_and_complete_for_the_lead() {
        let failure = outcome(exit(7), "cannot\nfind x");
        assert_eq!(failure.short_failure.as_deref(), Some("exit 7: find x"));
        assert_eq!(failure.full_failure.as_deref(), Some("exit 7: cannot\nfind x"));
        assert_eq!(outcome(exit(7), "").full_failure.as_deref(), Some("exit 7"));
        let signal = outcome(TurnEndKind::Exited(ExitStatus::from_raw(9)), "");
        assert_eq!((signal.reason, signal.short_failure.as_deref()), (IdleReason::Failed, Some("signal 9")));
        assert_eq!(outcome(exit(0), "noise").full_failure, None);
        assert_eq!(
            outcome(TurnEndKind::NotStarted("no command".into()), "").full_failure.as_deref(),
            Some("no command")
        );
    }

    #[test]
    fn task_ends_like_its_turn_unless_its_file_was_changed() {
        let me = MemberName::parse("ann").unwrap();
        let settlement = |task: Option<Task>, end: TurnEndKind| settle(task.as_ref(), &me, &outcome(end, ""));
        let own_task = || Some(task("in_progress", "Ann", "{}"));
        assert_eq!(settlement(own_task(), exit(0)), TaskSettlement::MarkCompleted);
        assert_eq!(settlement(own_task(), exit(1)), TaskSettlement::MarkFailed("exit 1".into()));
        assert_eq!(
            settlement(own_task(), TurnEndKind::Interrupted),
            TaskSettlement::MarkFailed("interrupted".into())
        );
        let failed_task = Some(task("in_progress", "ann", r#"{"failure":"no access"}"#));
        assert_eq!(settlement(failed_task, exit(0)), TaskSettlement::AlreadyFailed("no access".into()));
        assert_eq!(
            settlement(Some(task("completed", "ann", "{}")), exit(1)),
            TaskSettlement::AlreadyCompleted
        );
        assert_eq!(settlement(Some(task("pending", "", "{}")), exit(0)), TaskSettlement::NotOwned);
        assert_eq!(settlement(Some(task("in_progress", "bob", "{}")), exit(1)), TaskSettlement::NotOwned);
        assert_eq!(settlement(None, exit(0)), TaskSettlement::NotOwned);
    }
}
