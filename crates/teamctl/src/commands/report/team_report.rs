//! What a report contains: a team's finished tasks, failures, branches and costs, and what waits
//! for a person.

use super::failures::{ReportedFailure, failures};
use super::finished_tasks::finished_tasks;
use super::member_costs::TeamCost;
use super::open_tasks::open_tasks;
use super::read_member_branches::{MemberBranch, read_branches};
use super::team_events::{LoggedTaskEnd, TeamEvents};
use super::waiting_for_person::WaitingForPerson;
use crate::command_context::CommandContext;
use crate::commands::diagnose::why_no_progress::SystemSnapshot;
use crate::commands::hosts::branch_records::read_branch_records_in;
use client::read_event_log::EventLog;
use client::task_counts_and_failures::TaskCounts;
use client::team_view::{TeamView, open_team_view};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use protocol::timestamp::iso8601;
use runner::{TaskOutcome, TaskResult};
use serde::Serialize;
use store::{Team, now};

/// What a team did. The keys are those of `--json`. Times are in milliseconds since the epoch.
#[derive(Serialize)]
pub(super) struct TeamReport {
    pub(super) team: TeamName,
    /// `None`: since the team was created.
    pub(super) since: Option<u64>,
    pub(super) now: u64,
    /// The time of the first event of the team. `None` if the log has none.
    pub(super) log_begins_at: Option<u64>,
    /// `None` if the team exists, or if the event log does not have its deletion.
    pub(super) deleted_at: Option<u64>,
    /// What cannot be known, as sentences for people.
    pub(super) notes: Vec<String>,
    pub(super) tasks: Vec<TaskResult>,
    pub(super) task_counts: ReportedTaskCounts,
    /// Empty for a deleted team.
    pub(super) open_tasks: Vec<TaskResult>,
    pub(super) failures: Vec<ReportedFailure>,
    /// `None` for a deleted team.
    pub(super) waiting: Option<WaitingForPerson>,
    pub(super) branches: Vec<MemberBranch>,
    pub(super) cost: TeamCost,
}

/// The numbers of tasks. `completed` and `failed` count the tasks that ended in the period of the
/// report. `open` counts the tasks that are not completed and did not fail in this period.
#[derive(Debug, Serialize)]
pub(super) struct ReportedTaskCounts {
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) open: usize,
}

impl TeamReport {
    /// The report on a team that exists.
    pub(super) fn on_existing_team(
        context: &CommandContext,
        team: &Team,
        events: &TeamEvents,
        log: EventLog,
        since: Option<u64>,
    ) -> Result<TeamReport, ErrorReport> {
        let snapshot = SystemSnapshot::take(context, log)?;
        let roster = store::read_existing_roster(&context.state_dir_path()?)?;
        let records = read_branch_records_in(&context.state_dir_path()?, team.name())?;
        let view: TeamView = open_team_view(team, snapshot.status_source(), &mut |_, _| None);
        let now = now();
        let list = team.tasks().list()?;
        let tasks = finished_tasks(events, Some(&list), since, now);
        let TaskCounts { pending, in_progress, failed, .. } = view.tasks;
        let task_counts = count_tasks(&tasks, pending + in_progress + failed);
        let usage = roster.team_usage(team.name());
        Ok(TeamReport {
            team: team.name().clone(),
            since,
            now,
            log_begins_at: events.first_at,
            deleted_at: None,
            notes: log_note(events, since).into_iter().collect(),
            task_counts,
            open_tasks: open_tasks(&list, &tasks),
            failures: failures(events, &tasks),
            tasks,
            branches: read_branches(roster.worktrees(team.name()), &records, since),
            cost: TeamCost::new(events, Some(&usage), view.budget.clone()),
            waiting: Some(WaitingForPerson::read(context, &snapshot, team, view)?),
        })
    }

    /// The report on a team of which only the event log is left.
    pub(super) fn on_deleted_team(name: TeamName, events: &TeamEvents, since: Option<u64>) -> TeamReport {
        let now = now();
        let tasks = finished_tasks(events, None, since, now);
        let is_completed = |end| matches!(end, Some(LoggedTaskEnd::CompletedAt(_)));
        let incomplete = events.tasks.values().filter(|task| !is_completed(task.end)).count();
        TeamReport {
            since,
            now,
            log_begins_at: events.first_at,
            deleted_at: events.deleted_at,
            notes: deletion_note(events).into_iter().chain(log_note(events, since)).collect(),
            task_counts: count_tasks(&tasks, incomplete),
            open_tasks: Vec::new(),
            failures: failures(events, &tasks),
            tasks,
            waiting: None,
            branches: Vec::new(),
            cost: TeamCost::new(events, None, None),
            team: name,
        }
    }
}

/// `2026-11-27 22:00`.
pub(super) fn time_text(at: u64) -> String {
    iso8601(at).get(..16).unwrap_or_default().replace('T', " ")
}

/// `incomplete` is the number of tasks that are not completed, with the failed ones.
fn count_tasks(tasks: &[TaskResult], incomplete: usize) -> ReportedTaskCounts {
    let count = |outcome| tasks.iter().filter(|task| task.outcome == outcome).count();
    let (completed, failed) = (count(TaskOutcome::Completed), count(TaskOutcome::Failed));
    ReportedTaskCounts { completed, failed, open: incomplete.saturating_sub(failed) }
}

fn deletion_note(events: &TeamEvents) -> [String; 2] {
    let deletion = match events.deleted_at {
        Some(at) => format!("The team was deleted at {} UTC.", time_text(at)),
        None => {
            "The team does not exist any more; the event log does not say when it was deleted.".to_owned()
        }
    };
    let unknown = "Its requests, branches, tokens and cost are not known any more, only its event log.";
    [deletion, unknown.to_owned()]
}

/// Says that events are missing at the beginning of the report. `None` if none are.
fn log_note(events: &TeamEvents, since: Option<u64>) -> Option<String> {
    let Some(first) = events.first_at else {
        return Some("The event log has no event of the team.".to_owned());
    };
    let is_complete = events.has_creation || since.is_some_and(|since| since >= first);
    let time = time_text(first);
    (!is_complete)
        .then(|| format!("The event log has the team only since {time} UTC; what was before is not known."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_is_not_known() {
        let note = |first_at, has_creation, since| {
            let mut events = TeamEvents::default();
            (events.first_at, events.has_creation) = (first_at, has_creation);
            log_note(&events, since)
        };
        assert_eq!(note(Some(60_000), true, None), None);
        assert_eq!(note(Some(60_000), false, Some(60_000)), None, "the log reaches back to that time");
        let incomplete =
            "The event log has the team only since 1970-01-01 00:01 UTC; what was before is not known.";
        assert_eq!(note(Some(60_000), false, None).as_deref(), Some(incomplete));
        assert_eq!(note(Some(60_000), false, Some(1)).as_deref(), Some(incomplete));
        assert!(note(None, false, None).is_some_and(|note| note.contains("no event of the team")));
        let deleted = |deleted_at| {
            let mut events = TeamEvents::default();
            events.deleted_at = deleted_at;
            deletion_note(&events).join(" ")
        };
        assert!(
            deleted(Some(60_000)).starts_with("The team was deleted at 1970-01-01 00:01 UTC. Its requests,")
        );
        assert!(deleted(None).contains("does not say when"));
    }
}
