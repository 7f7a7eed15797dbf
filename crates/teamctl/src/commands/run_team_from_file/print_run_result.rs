//! Prints the result of a run: a table for people, or an object for scripts.

use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use crate::commands::task_result_table::{ReasonColumn, log_help, result_rows};
use crate::output;
use protocol::team_and_member_names::TeamName;
use runner::{RunReport, TaskOutcome, TaskResult, completed_count};
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
    if let (Some(record), false, false) = (&report.record, context.args.json, context.args.quiet) {
        output::print_line(&format!("The record is {}.", record.display()));
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
    if let Some(record) = &report.record {
        object["record"] = json!(record);
    }
    if let Some(error) = &report.early_end {
        object["error"] = json!(output::with_suggested_commands(context, error));
    }
    output::print_json(&object.to_string());
}

/// Prints the table. With `--quiet` it has only the tasks that are not completed.
fn print_rows(context: &CommandContext, team: &TeamName, tasks: &[TaskResult]) {
    let incomplete = || tasks.iter().filter(|task| task.outcome != TaskOutcome::Completed);
    if !context.args.quiet {
        output::print_table(&result_rows(tasks, ReasonColumn::Shown));
        output::print_line(&format!("{} of {} tasks are completed.", completed_count(tasks), tasks.len()));
        if let Some(help) = log_help(team, tasks) {
            output::print_line(&rewrite_commands(context, &help));
        }
    } else if incomplete().next().is_some() {
        output::print_table(&result_rows(incomplete(), ReasonColumn::Shown));
    }
}
