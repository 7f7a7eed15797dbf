//! `task create`: a new task, pending.

use super::{parse_metadata, print_task};
use crate::context::CommandContext;
use client::team_context::member_name;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use serde_json::{Map, Value};
use store::{NewTask, Team};

/// Add a task
///
/// The built-in worker runs what the metadata has as `command`; only the lead or a person may put one there, unless
/// the team's policy says commands = "any". A task that nobody owns is taken by the first member that is idle.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task create 'count the lines'\n  teamctl task create 'write the report' --blocked-by 1 --blocked-by 2 --owner ann\n  teamctl task create 'run the tests' --metadata '{\"command\": \"make test\"}'"
)]
pub(super) struct CreateTaskArgs {
    /// What to do, in the imperative
    subject: String,
    /// More of it
    #[arg(long, value_name = "D", default_value = "")]
    description: String,
    /// What is shown while it runs: "counting the lines"
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// A task that must be done first; may be given again
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    blocked_by: Vec<TaskId>,
    /// The member whose task it is, and who is told
    #[arg(long, value_name = "N")]
    owner: Option<String>,
    /// Anything else, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_metadata)]
    metadata: Option<Map<String, Value>>,
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &CreateTaskArgs) -> Result<(), ErrorReport> {
    let new = NewTask {
        description: args.description.clone(),
        active_form: args.active_form.clone(),
        owner: args.owner.as_deref().map(|name| member_name(team, name)).transpose()?,
        blocked_by: args.blocked_by.clone(),
        metadata: args.metadata.clone(),
        ..NewTask::new(&args.subject, &here.caller_name())
    };
    let task = here.caller_in(team.clone())?.create_task(new)?;
    print_task(here, &task, &format!("Task {} is there: {}", task.id, task.subject));
    Ok(())
}
