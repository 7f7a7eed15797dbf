//! What the end of a turn means, for the task it was about and for the lead: pure.

use super::host::{How, TurnEnd};
use protocol::control::ExitReport;
use protocol::name::AgentName;
use protocol::payload::IdleReason;
use protocol::task::{Task, TaskStatus};
use std::process::ExitStatus;

/// Characters of the last line that a task's metadata keeps.
const LAST_LINE: usize = 160;

/// How a turn went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) reason: IdleReason,
    /// `exit 1: ` and the last line, for the task's metadata; none where it went well.
    pub(super) failure: Option<String>,
    /// `exit 1: ` and the last lines, for the lead.
    pub(super) at_length: Option<String>,
}

/// What becomes of the task of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is done, and to be marked so.
    Complete,
    /// It failed, and is to be marked so.
    Fail(String),
    /// The agent has said so itself.
    Completed,
    /// The agent has said so itself, and why.
    Failed(String),
    /// It is not the agent's any more: given back, taken away, deleted.
    Gone,
}

pub(super) fn outcome(end: &TurnEnd) -> Outcome {
    let (reason, failure) = match &end.how {
        How::Status(status) => match failure(*status) {
            None => (IdleReason::Available, None),
            Some(why) => (IdleReason::Failed, Some(why)),
        },
        How::Done => (IdleReason::Available, None),
        How::NotRun(why) | How::Failed(why) => (IdleReason::Failed, Some(why.clone())),
        How::Interrupted => (IdleReason::Interrupted, Some("interrupted".to_owned())),
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
    Outcome { reason, failure, at_length }
}

/// Cut where it is longer than a table takes.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LAST_LINE).collect())
}

/// `now` is the task as it is after the turn; none: it is deleted.
pub(super) fn verdict(now: Option<&Task>, me: &AgentName, outcome: &Outcome) -> Verdict {
    let Some(task) = now else { return Verdict::Gone };
    match (&task.status, &task.owner) {
        (TaskStatus::Completed, _) => Verdict::Completed,
        (TaskStatus::InProgress, Some(owner)) if owner == me => match (task.failure(), &outcome.failure) {
            (Some(why), _) => Verdict::Failed(why.to_owned()),
            (None, Some(why)) => Verdict::Fail(why.clone()),
            (None, None) => Verdict::Complete,
        },
        _ => Verdict::Gone,
    }
}

impl Verdict {
    /// `completedStatus` and `failureReason` of the notification.
    pub(super) fn told(&self) -> Option<(&'static str, Option<&str>)> {
        match self {
            Verdict::Complete | Verdict::Completed => Some(("completed", None)),
            Verdict::Fail(why) | Verdict::Failed(why) => Some(("failed", Some(why))),
            Verdict::Gone => None,
        }
    }
}

fn failure(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| ExitReport::from_status(status).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn ended(how: How, last: &str) -> Outcome {
        outcome(&TurnEnd { how, last: last.to_owned(), used: None })
    }

    fn exit(code: i32) -> How {
        How::Status(ExitStatus::from_raw(code << 8))
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
        assert_eq!(bad.failure.as_deref(), Some("exit 7: find x"));
        assert_eq!(bad.at_length.as_deref(), Some("exit 7: cannot\nfind x"));
        assert_eq!(ended(exit(7), "").at_length.as_deref(), Some("exit 7"));
        let killed = ended(How::Status(ExitStatus::from_raw(9)), "");
        assert_eq!((killed.reason, killed.failure.as_deref()), (IdleReason::Failed, Some("signal 9")));
        assert_eq!(ended(exit(0), "noise").at_length, None);
        assert_eq!(ended(How::NotRun("no command".into()), "").at_length.as_deref(), Some("no command"));
    }

    #[test]
    fn a_task_ends_as_its_turn_unless_somebody_has_said_more() {
        let me = AgentName::parse("ann").unwrap();
        let of = |task: Option<Task>, how: How| verdict(task.as_ref(), &me, &ended(how, ""));
        let mine = || Some(task("in_progress", "Ann", "{}"));
        assert_eq!(of(mine(), exit(0)), Verdict::Complete);
        assert_eq!(of(mine(), exit(1)), Verdict::Fail("exit 1".into()));
        assert_eq!(of(mine(), How::Interrupted), Verdict::Fail("interrupted".into()));
        let said = Some(task("in_progress", "ann", r#"{"failure":"no access"}"#));
        assert_eq!(of(said, exit(0)), Verdict::Failed("no access".into()));
        assert_eq!(of(Some(task("completed", "ann", "{}")), exit(1)), Verdict::Completed);
        assert_eq!(of(Some(task("pending", "", "{}")), exit(0)), Verdict::Gone);
        assert_eq!(of(Some(task("in_progress", "bob", "{}")), exit(1)), Verdict::Gone);
        assert_eq!(of(None, exit(0)), Verdict::Gone);
    }
}
