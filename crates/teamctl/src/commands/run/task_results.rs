//! What a run came to: one row for each task, for people and as JSON, and the exit code.

use super::run_file::RunFile;
use super::task_fate::{RunDecision, TaskFate, run_file_key};
use super::task_times::TaskTimes;
use crate::output::sanitize;
use protocol::id::TaskId;
use protocol::name::TeamName;
use protocol::task::{Task, TaskStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use store::now;

/// One task at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TaskResult {
    /// What the file calls it; none for one that an agent added.
    pub(super) key: Option<String>,
    /// None for one that was never made.
    pub(super) id: Option<TaskId>,
    pub(super) subject: String,
    pub(super) owner: Option<String>,
    /// `completed`, `failed`, `not_done`, `deleted`.
    pub(super) outcome: &'static str,
    /// How long it was worked on; none where nobody did.
    pub(super) seconds: Option<f64>,
    /// Why it is not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "why")]
    pub(super) reason: Option<String>,
}

/// All rows: the file's tasks in its order, then those that were added.
pub(super) fn task_results(
    file: &RunFile,
    known: &BTreeMap<TaskId, Task>,
    decision: &RunDecision,
    log: &TaskTimes,
) -> Vec<TaskResult> {
    let of = |task: &Task| task_result(task, decision.fates.get(&task.id), log);
    let by_key: BTreeMap<&str, &Task> =
        known.values().filter_map(|task| Some((run_file_key(task)?, task))).collect();
    let planned = file.tasks.iter().map(|plan| match by_key.get(plan.key.as_str()) {
        Some(task) => of(task),
        None => TaskResult {
            key: Some(plan.key.clone()),
            id: None,
            subject: plan.subject.clone(),
            owner: plan.owner.as_ref().map(ToString::to_string),
            outcome: "not_done",
            seconds: None,
            reason: Some("it was never made".to_owned()),
        },
    });
    let is_planned =
        |task: &&Task| run_file_key(task).is_some_and(|key| file.tasks.iter().any(|plan| plan.key == key));
    planned.chain(known.values().filter(|task| !is_planned(task)).map(of)).collect()
}

fn task_result(task: &Task, fate: Option<&TaskFate>, log: &TaskTimes) -> TaskResult {
    let (outcome, why) = match fate {
        Some(TaskFate::Completed) => ("completed", None),
        Some(TaskFate::Failed(why)) => ("failed", Some(why.clone())),
        Some(TaskFate::Unreachable(why)) => ("not_done", Some(why.clone())),
        Some(TaskFate::Running) => ("not_done", Some("it was not finished".to_owned())),
        Some(TaskFate::Waiting) => ("not_done", Some("it was not begun".to_owned())),
        // Newer programs tidy up files of what is completed.
        None if task.status == TaskStatus::Completed => ("completed", None),
        None => ("deleted", Some("somebody deleted it".to_owned())),
    };
    TaskResult {
        key: run_file_key(task).map(str::to_owned),
        id: Some(task.id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome,
        seconds: log.duration(task.id, now()).map(|ms| ms as f64 / 1000.0),
        reason: why,
    }
}

/// How many are completed.
pub(super) fn completed_count(rows: &[TaskResult]) -> usize {
    rows.iter().filter(|row| row.outcome == "completed").count()
}

/// Where to look: who failed, in one line; their logs outlive the team.
pub(super) fn log_help(team: &TeamName, rows: &[TaskResult]) -> Option<String> {
    let mut failed: Vec<&str> = Vec::new();
    for owner in rows.iter().filter(|row| row.outcome == "failed").filter_map(|row| row.owner.as_deref()) {
        if !failed.contains(&owner) {
            failed.push(owner);
        }
    }
    let (first, others) = failed.split_first()?;
    let others = if others.is_empty() { String::new() } else { format!(" (or {})", others.join(", ")) };
    Some(sanitize(&format!("see why: teamctl logs {first} -t {team}{others}")))
}

/// The table for people, with a head.
pub(super) fn result_rows<'a>(rows: impl IntoIterator<Item = &'a TaskResult>) -> Vec<Vec<String>> {
    let head = ["TASK", "OWNER", "TIME", "OUTCOME", "SUBJECT"].map(str::to_owned).to_vec();
    std::iter::once(head).chain(rows.into_iter().map(result_row)).collect()
}

fn result_row(row: &TaskResult) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let outcome = row.outcome.replace('_', " ");
    let why = row.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let cells = [
        or_dash(row.key.clone().or_else(|| row.id.map(|id| id.to_string()))),
        or_dash(row.owner.clone()),
        or_dash(row.seconds.map(|seconds| short_duration((seconds * 1000.0) as u64))),
        format!("{outcome}{why}"),
        row.subject.clone(),
    ];
    cells.map(|cell| sanitize(&cell.replace(['\n', '\t'], " "))).to_vec()
}

/// A duration in ms, short: `0.4s`, `12s`, `3m05s`, `2h10m`.
pub(super) fn short_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let shown = [430, 9_999, 12_000, 185_000, 7_800_000].map(short_duration);
        assert_eq!(shown, ["0.4s", "9.9s", "12s", "3m05s", "2h10m"]);
    }

    #[test]
    fn who_failed_is_named_once_in_one_line() {
        let row = |owner: &str, outcome| TaskResult {
            key: None,
            id: None,
            subject: "s".into(),
            owner: Some(owner.into()),
            outcome,
            seconds: None,
            reason: None,
        };
        let team = TeamName::parse("t").unwrap();
        let said = |rows: &[TaskResult]| log_help(&team, rows).unwrap_or_default();
        assert_eq!(said(&[row("ann", "completed"), row("bob", "not_done")]), "");
        assert_eq!(said(&[row("bob", "failed"), row("bob", "failed")]), "see why: teamctl logs bob -t t");
        let both = [row("bob", "failed"), row("ann", "failed")];
        assert_eq!(said(&both), "see why: teamctl logs bob -t t (or ann)");
    }

    #[test]
    fn a_row_is_one_clean_line() {
        let row = TaskResult {
            key: Some("k".into()),
            id: None,
            subject: "a\u{1b}\nb".into(),
            owner: None,
            outcome: "not_done",
            seconds: None,
            reason: Some("it waits\tfor task 2".into()),
        };
        assert_eq!(result_row(&row), ["k", "-", "-", "not done (it waits for task 2)", "a\\u{1b} b"]);
    }
}
