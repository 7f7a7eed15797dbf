//! What failed in a team: tasks, turns, and spawns of members, with the reasons in the event log.

use super::team_events::{LoggedExit, LoggedTaskEnd, MemberEvents, TeamEvents};
use crate::output::clip;
use protocol::member_task_and_request_ids::TaskId;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;
use runner::{TaskOutcome, TaskResult};
use serde::Serialize;

/// The longest reason in a line for people, in columns.
const REASON_COLUMNS: usize = 200;

/// Something that failed. The names of variants and fields are the keys in the output of `teamctl
/// report --json`. Times are in milliseconds since the epoch, and null if unknown.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ReportedFailure {
    Task {
        id: Option<TaskId>,
        subject: String,
        owner: Option<String>,
        /// How often the work on the task failed.
        failures: u32,
        reason: String,
        at: Option<u64>,
        /// What became of the task since.
        now: StateAfterFailure,
    },
    /// The member's turns, with or without a task.
    Turns { member: MemberName, failed_turns: u64, reason: Option<String> },
    /// Spawns of the member. The times and reasons are those of the last one.
    Exit { member: MemberName, exits: usize, outcome: String, reason: String, at: u64 },
    /// The member could not be started.
    Spawn { member: MemberName, reason: String, at: u64 },
    /// The budget of the team, or the share of a member.
    Budget { member: Option<MemberName>, reason: String, at: u64 },
}

/// The state of a task after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateAfterFailure {
    Failed,
    Completed,
    /// The task was released, and has not ended since.
    Open,
}

/// The failures in `events`, and the failed tasks among `tasks`.
pub(super) fn failures(events: &TeamEvents, tasks: &[TaskResult]) -> Vec<ReportedFailure> {
    let mut failures = task_failures(events, tasks);
    failures.extend(events.members.iter().flat_map(|(name, member)| member_failures(name, member)));
    failures.extend(events.exhausted_budgets.iter().map(|budget| ReportedFailure::Budget {
        member: budget.member.clone(),
        reason: budget.reason.clone(),
        at: budget.at,
    }));
    failures
}

fn task_failures(events: &TeamEvents, tasks: &[TaskResult]) -> Vec<ReportedFailure> {
    let failed_now = tasks.iter().filter(|task| task.outcome == TaskOutcome::Failed).map(|task| {
        let logged = task.id.and_then(|id| events.tasks.get(&id));
        ReportedFailure::Task {
            id: task.id,
            subject: task.subject.clone(),
            owner: task.owner.clone(),
            failures: logged.map_or(1, |logged| logged.failures.max(1)),
            reason: task.reason.clone().unwrap_or_default(),
            at: logged.and_then(|logged| logged.last_failure.as_ref()).map(|(at, _)| *at),
            now: StateAfterFailure::Failed,
        }
    });
    let is_failed =
        |id: TaskId| tasks.iter().any(|task| task.id == Some(id) && task.outcome == TaskOutcome::Failed);
    let failed_before = events.tasks.iter().filter(|(id, _)| !is_failed(**id)).filter_map(|(id, task)| {
        let (at, reason) = task.last_failure.clone()?;
        let now = match task.end {
            Some(LoggedTaskEnd::CompletedAt(_)) => StateAfterFailure::Completed,
            Some(LoggedTaskEnd::FailedAt(_)) | None => StateAfterFailure::Open,
        };
        let (subject, owner) = (task.subject.clone(), task.owner.as_ref().map(ToString::to_string));
        Some(ReportedFailure::Task {
            id: Some(*id),
            subject,
            owner,
            failures: task.failures,
            reason,
            at: Some(at),
            now,
        })
    });
    failed_now.chain(failed_before).collect()
}

fn member_failures(name: &MemberName, member: &MemberEvents) -> Vec<ReportedFailure> {
    let mut failures = Vec::new();
    // A turn that failed with its task is already in the list.
    if member.failed_turns > member.failed_tasks {
        let (failed_turns, reason) = (member.failed_turns, member.turn_failure.clone());
        failures.push(ReportedFailure::Turns { member: name.clone(), failed_turns, reason });
    }
    let bad_exits = member.bad_exits();
    if let Some(LoggedExit { at, outcome, description }) = bad_exits.last() {
        let refusal = member.respawn_refusal.as_ref().map(|reason| format!("; not started again: {reason}"));
        failures.push(ReportedFailure::Exit {
            member: name.clone(),
            exits: bad_exits.len(),
            outcome: outcome.clone(),
            reason: format!("{description}{}", refusal.unwrap_or_default()),
            at: *at,
        });
    }
    failures.extend(member.spawn_failure.clone().map(|(at, reason)| ReportedFailure::Spawn {
        member: name.clone(),
        reason,
        at,
    }));
    failures
}

impl ReportedFailure {
    /// The failure as one line for people.
    pub(super) fn line(&self) -> String {
        match self {
            ReportedFailure::Task { id, subject, owner, failures, reason, now, .. } => {
                let id = id.map_or_else(String::new, |id| format!(" {id}"));
                let owner = owner.as_ref().map_or_else(String::new, |owner| format!(" of {owner}"));
                let end = match (failures, now) {
                    (1, StateAfterFailure::Failed) => String::new(),
                    (count, StateAfterFailure::Failed) => format!(", {}", count_times(u64::from(*count))),
                    (count, StateAfterFailure::Completed) => {
                        format!(", {}, then completed", count_times(u64::from(*count)))
                    }
                    (count, StateAfterFailure::Open) => {
                        format!(", {}, open again", count_times(u64::from(*count)))
                    }
                };
                format!("task{id} ({}){owner}{end}: {}", single_line(subject), shown_reason(reason))
            }
            ReportedFailure::Turns { member, failed_turns, reason } => {
                let turns =
                    if *failed_turns == 1 { "1 turn".to_owned() } else { format!("{failed_turns} turns") };
                let reason =
                    reason.as_ref().map_or_else(String::new, |reason| format!(": {}", shown_reason(reason)));
                format!("{turns} of {member}{reason}")
            }
            ReportedFailure::Exit { member, exits, outcome, reason, .. } => {
                let count = match exits {
                    1 => String::new(),
                    count => format!(", {}; the last", count_times(*count as u64)),
                };
                format!("{member} ended, {outcome}{count}: {}", shown_reason(reason))
            }
            ReportedFailure::Spawn { member, reason, .. } => {
                format!("{member} was not started: {}", shown_reason(reason))
            }
            ReportedFailure::Budget { member, reason, .. } => {
                let subject = member.as_ref().map_or("the team".to_owned(), ToString::to_string);
                format!("{subject} was stopped: {}", shown_reason(reason))
            }
        }
    }
}

fn shown_reason(reason: &str) -> String {
    clip(&single_line(reason), REASON_COLUMNS)
}

fn count_times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event_log_line::Event;
    use protocol::timestamp::iso8601;

    fn lines(events: &[&str]) -> Vec<String> {
        let parse = |event: &&str| -> Event {
            let line = format!(r#"{{"time":"{}","team":"t",{event}}}"#, iso8601(1_000));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        let events: Vec<Event> = events.iter().map(parse).collect();
        let events = TeamEvents::new(&events, None);
        let tasks = super::super::finished_tasks::finished_tasks(&events, None, None, 0);
        failures(&events, &tasks).iter().map(ReportedFailure::line).collect()
    }

    const TASK_FAILED: &str =
        r#""event":"task_failed","task":"3","subject":"a\nb","owner":"ann","reason":"exit 1""#;
    const TURN_FAILED: &str = r#""event":"member_idle","member":"ann","reason":"failed""#;

    #[test]
    fn turn_that_failed_with_its_task_is_listed_once() {
        assert_eq!(lines(&[TASK_FAILED, TURN_FAILED]), ["task 3 (a b) of ann: exit 1"]);
        let released = r#""event":"task_released","task":"3","subject":"a""#;
        assert_eq!(lines(&[TASK_FAILED, TURN_FAILED, released]), ["task 3 (a), once, open again: exit 1"]);
        let paused = r#""event":"member_turns_failed","member":"ann","failed_turns":3,"reason":"no\nlogin""#;
        assert_eq!(lines(&[TURN_FAILED, TURN_FAILED, paused]), ["2 turns of ann: no login"]);
    }

    #[test]
    fn retried_task_says_what_became_of_it() {
        let completed = r#""event":"task_completed","task":"3","subject":"a","owner":"bob""#;
        let released = r#""event":"task_released","task":"3","subject":"a""#;
        assert_eq!(
            lines(&[TASK_FAILED, TASK_FAILED, completed]),
            ["task 3 (a) of bob, twice, then completed: exit 1"]
        );
        assert_eq!(lines(&[TASK_FAILED, released]), ["task 3 (a), once, open again: exit 1"]);
    }

    #[test]
    fn exits_spawns_and_budgets_are_listed() {
        let exited =
            r#""event":"member_exited","member":"bob","outcome":"killed","description":"killed (signal 9)""#;
        let refused = r#""event":"member_respawns_exhausted","member":"bob","reason":"too often""#;
        assert_eq!(lines(&[exited]), ["bob ended, killed: killed (signal 9)"]);
        assert_eq!(
            lines(&[exited, exited, refused]),
            ["bob ended, killed, twice; the last: killed (signal 9); not started again: too often"]
        );
        let unspawned = r#""event":"member_spawn_failed","member":"cy","reason":"no such program""#;
        let budget = r#""event":"budget_exhausted","reason":"its budget of 2 turns is used up""#;
        assert_eq!(
            lines(&[unspawned, budget]),
            ["cy was not started: no such program", "the team was stopped: its budget of 2 turns is used up"]
        );
    }
}
