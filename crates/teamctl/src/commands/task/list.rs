//! `task list`: shows the tasks, ordered by id, without those that only track agents.

use super::format::task_row;
use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorReport;
use protocol::task::Task;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Team;

/// List the tasks
///
/// Example: teamctl task list --available
///
/// A task is available if it is pending, has no owner, and waits for no other task.
#[derive(Debug, clap::Args)]
pub(super) struct ListTasksArgs {
    /// Also list the tasks that track agents
    #[arg(long)]
    all: bool,
    /// List only available tasks
    #[arg(long)]
    available: bool,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &ListTasksArgs) -> Result<(), ErrorReport> {
    let all_tasks = team.tasks().list_cached()?;
    for name in team.tasks().misnamed_files().unwrap_or_default() {
        output::print_warning(&format!("{name} is not shown: the file of a task has a number for a name"));
    }
    let is_shown = |task: &&Arc<Task>| {
        (args.all || !task.is_internal()) && (!args.available || task.is_available(&all_tasks))
    };
    let shown_tasks: Vec<&Arc<Task>> = all_tasks.iter().filter(is_shown).collect();
    if context.args.json {
        let tasks: Vec<Value> = shown_tasks.iter().map(|task| task.to_json(&all_tasks)).collect();
        output::print_result(context, &json!({"tasks": tasks}), "");
    } else if shown_tasks.is_empty() {
        output::print_result(context, &json!({}), "No tasks.");
    } else if !context.args.quiet {
        print_tasks(team, &shown_tasks, &all_tasks);
    }
    Ok(())
}

fn print_tasks(team: &Team, shown_tasks: &[&Arc<Task>], all_tasks: &[Arc<Task>]) {
    let members = team.config().map(|config| config.members).unwrap_or_default();
    let mut rows = vec![["ID", "STATUS", "OWNER", "BLOCKED BY", "SUBJECT"].map(str::to_owned).to_vec()];
    rows.extend(shown_tasks.iter().map(|task| task_row(task, all_tasks, &members)));
    output::print_table(&rows);
}
