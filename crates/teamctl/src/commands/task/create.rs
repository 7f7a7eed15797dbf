//! `task create`: adds a pending task.

use super::format::print_task;
use super::parse_json_metadata::parse_metadata;
use crate::command_context::CommandContext;
use client::root_socket_team_and_caller::member_name;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::shell_quote::shell_quote;
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use store::{NewTask, Team};

/// Add a task
///
/// Example: teamctl task create 'count the lines'
///
/// The first idle member claims a task without an owner. The built-in worker runs the command of a
/// task. Only the lead or a person may set a command, unless the team's policy has commands =
/// "any".
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task create 'run the tests' --command 'make test'\n  teamctl task create 'write the report' --blocked-by 1 --blocked-by 2 --owner ann"
)]
pub(super) struct CreateTaskArgs {
    /// What to do, in the imperative
    #[arg(allow_hyphen_values = true)]
    subject: String,
    /// What to do, in detail
    #[arg(long, value_name = "D", default_value = "", allow_hyphen_values = true)]
    description: String,
    /// Text while the task is in progress, such as "counting the lines"
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    active_form: Option<String>,
    /// Task that must be completed first; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    blocked_by: Vec<TaskId>,
    /// Member that owns the task, and gets a message
    #[arg(long, value_name = "N")]
    owner: Option<String>,
    /// Command that a worker runs for the task
    #[arg(long, value_name = "CMD", allow_hyphen_values = true)]
    command: Option<String>,
    /// Further fields, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_metadata)]
    metadata: Option<Map<String, Value>>,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &CreateTaskArgs) -> Result<(), ErrorReport> {
    let owner = args.owner.as_deref().map(|name| member_name(team, name)).transpose()?;
    let metadata = metadata(args)?;
    let has_command = metadata.as_ref().is_some_and(|fields| fields.contains_key("command"));
    if let Some(owner) = owner.as_ref().filter(|_| !has_command) {
        check_needs_no_command(context, team, owner, &args.subject)?;
    }
    let new = NewTask {
        description: args.description.clone(),
        active_form: args.active_form.clone(),
        owner,
        blocked_by: args.blocked_by.clone(),
        metadata,
        ..NewTask::new(&args.subject, &context.caller_name())
    };
    let task = context.caller_in(team.clone()).create_task(new)?;
    print_task(context, &task, &format!("created task {}: {}", task.id, task.subject));
    Ok(())
}

/// Refuses a task without a command for a worker, which runs nothing but commands.
fn check_needs_no_command(
    context: &CommandContext,
    team: &Team,
    owner: &MemberName,
    subject: &str,
) -> Result<(), ErrorReport> {
    let roster = store::read_roster_file(&context.state_dir_path()?).unwrap_or_default();
    if !roster.needs_task_commands(team.name(), owner) {
        return Ok(());
    }
    let message = format!("cannot give {owner} a task without a command: a worker runs only commands");
    let subject = shell_quote(subject);
    Err(ErrorReport::new(ErrorKind::Usage, message)
        .with_help(format!("say which one: teamctl task create {subject} --owner {owner} --command COMMAND")))
}

/// Returns the metadata of the new task: the object of `--metadata`, and the text of `--command`
/// under the key `command`.
///
/// # Errors
///
/// `Usage` if `--metadata` has the key `command` too.
fn metadata(args: &CreateTaskArgs) -> Result<Option<Map<String, Value>>, ErrorReport> {
    let Some(command) = &args.command else { return Ok(args.metadata.clone()) };
    let mut metadata = args.metadata.clone().unwrap_or_default();
    match metadata.insert("command".to_owned(), Value::from(command.as_str())) {
        None => Ok(Some(metadata)),
        Some(_) => Err(ErrorReport::new(ErrorKind::Usage, "cannot create a task with two commands")
            .with_help("leave out --command, or the key command of --metadata")),
    }
}
