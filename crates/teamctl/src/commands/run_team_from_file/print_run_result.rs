//! Prints the result of a run: a table for people, or an object for scripts.

use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use crate::output;
use protocol::team_and_member_names::TeamName;
use runner::{RunReport, TaskOutcome, TaskResult, completed_count, short_duration};
use serde_json::json;

/// Prints the results of the tasks, then why the run ended early or why there was nothing to do.
pub(super) fn print_report(context: &CommandContext, team: &TeamName, report: &RunReport) {
    // There are no results if the team is already deleted.
    let has_results = !report.tasks.is_empty() || report.nothing_to_do.is_none();
    if context.args.json {
        print_object(context, report);
    } else if has_results {
        print_rows(context, team, &report.tasks);
    }
    if let Some(error) = &report.early_end {
        output::print_partial_error(context, error);
    }
    if let Some(note) = &report.nothing_to_do {
        output::print_warning(&rewrite_commands(context, note));
    }
}

fn print_object(context: &CommandContext, report: &RunReport) {
    let mut object = json!({
        "ok": report.exit_code == 0,
        "tasks": report.tasks,
        "completed": completed_count(&report.tasks),
        "total": report.tasks.len(),
    });
    if let Some(error) = &report.early_end {
        object["error"] = json!(output::with_suggested_commands(context, error));
    }
    output::print_json(&object.to_string());
}

/// Prints the table. With `--quiet` it has only the tasks that are not completed.
fn print_rows(context: &CommandContext, team: &TeamName, tasks: &[TaskResult]) {
    let incomplete = || tasks.iter().filter(|task| task.outcome != TaskOutcome::Completed);
    if !context.args.quiet {
        output::print_table(&result_rows(tasks));
        output::print_line(&format!("{} of {} tasks are completed.", completed_count(tasks), tasks.len()));
        if let Some(help) = log_help(team, tasks) {
            output::print_line(&rewrite_commands(context, &help));
        }
    } else if incomplete().next().is_some() {
        output::print_table(&result_rows(incomplete()));
    }
}

/// Returns a text that says how to see the output of failed tasks. The output logs are kept when
/// the team is deleted. Returns `None` if no task has failed.
fn log_help(team: &TeamName, tasks: &[TaskResult]) -> Option<String> {
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
fn result_rows<'a>(tasks: impl IntoIterator<Item = &'a TaskResult>) -> Vec<Vec<String>> {
    let heading = ["TASK", "OWNER", "TIME", "OUTCOME", "SUBJECT"].map(str::to_owned).to_vec();
    std::iter::once(heading).chain(tasks.into_iter().map(result_row)).collect()
}

fn result_row(task: &TaskResult) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let reason = task.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
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
        };
        assert_eq!(result_row(&row), ["k", "-", "-", "not done (it waits for task 2)", "a\\u{1b} b"]);
    }
}
