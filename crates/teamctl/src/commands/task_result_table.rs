//! The results of tasks as a table for people: the last page of `run`, and a part of `report`.

use crate::output;
use protocol::team_and_member_names::TeamName;
use runner::{TaskOutcome, TaskResult, short_duration};

/// Whether the table says why a task is not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum ReasonColumn {
    /// The reason follows the outcome.
    Shown,
    /// The caller prints the reasons below the table.
    Omitted,
}

/// Returns a text that names the command to see the output of failed tasks. Returns `None` if no
/// task has failed.
pub(in crate::commands) fn log_help(team: &TeamName, tasks: &[TaskResult]) -> Option<String> {
    let mut owners: Vec<&str> = Vec::new();
    let failed = tasks.iter().filter(|task| task.outcome == TaskOutcome::Failed);
    for owner in failed.filter_map(|task| task.owner.as_deref()) {
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let (first_owner, other_owners) = owners.split_first()?;
    let other_owners =
        if other_owners.is_empty() { String::new() } else { format!(" (or {})", other_owners.join(", ")) };
    Some(output::sanitize(&format!("see why: teamctl logs {first_owner} -t {team}{other_owners}")))
}

/// The rows of the table and its heading.
pub(in crate::commands) fn result_rows<'a>(
    tasks: impl IntoIterator<Item = &'a TaskResult>,
    reasons: ReasonColumn,
) -> Vec<Vec<String>> {
    let heading = ["TASK", "OWNER", "TIME", "OUTCOME", "SUBJECT"].map(str::to_owned).to_vec();
    std::iter::once(heading).chain(tasks.into_iter().map(|task| result_row(task, reasons))).collect()
}

fn result_row(task: &TaskResult, reasons: ReasonColumn) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let reason = task.reason.as_ref().filter(|_| reasons == ReasonColumn::Shown);
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let cells = [
        or_dash(task.key.clone().or_else(|| task.id.map(|id| id.to_string()))),
        or_dash(task.owner.clone()),
        or_dash(task.seconds.map(|seconds| short_duration((seconds * 1000.0) as u64))),
        format!("{}{reason}", task.outcome.text()),
        task.subject.clone(),
    ];
    cells.map(|cell| output::sanitize(&cell.replace(['\n', '\t'], " "))).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_help_names_each_owner_of_a_failed_task_once() {
        let row = |owner: &str, outcome| TaskResult {
            key: None,
            id: None,
            subject: "s".into(),
            owner: Some(owner.into()),
            outcome,
            seconds: None,
            reason: None,
            answer: None,
        };
        let team = TeamName::parse("t").unwrap();
        let help = |rows: &[TaskResult]| log_help(&team, rows).unwrap_or_default();
        assert_eq!(help(&[row("ann", TaskOutcome::Completed), row("bob", TaskOutcome::NotDone)]), "");
        let failed = |owner| row(owner, TaskOutcome::Failed);
        assert_eq!(help(&[failed("bob"), failed("bob")]), "see why: teamctl logs bob -t t");
        assert_eq!(help(&[failed("bob"), failed("ann")]), "see why: teamctl logs bob -t t (or ann)");
    }

    #[test]
    fn row_is_one_line_without_control_characters() {
        let row = TaskResult {
            key: Some("k".into()),
            id: None,
            subject: "a\u{1b}\nb".into(),
            owner: None,
            outcome: TaskOutcome::NotDone,
            seconds: None,
            reason: Some("it waits\tfor task 2".into()),
            answer: None,
        };
        let cells = |reasons| result_row(&row, reasons);
        assert_eq!(cells(ReasonColumn::Omitted)[3], "not done");
        assert_eq!(
            cells(ReasonColumn::Shown),
            ["k", "-", "-", "not done (it waits for task 2)", "a\\u{1b} b"]
        );
    }
}
