//! `task`: shows and changes the task list. Each subcommand has its own file. The crate `store`
//! checks the rules for tasks.

mod claim;
mod create;
mod delete;
mod done;
mod force_option_ends_turn;
mod format;
mod get;
mod list;
mod parse_json_metadata;
mod release;
mod update;

use crate::command_context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Show and change the task list
///
/// Example: teamctl task create 'count the lines' --command 'wc -l src/*.rs'
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task list\n  teamctl task claim\n  teamctl task done 3")]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    verb: TaskSubcommand,
}

impl TaskArgs {
    /// Who may run the subcommand. `--force` ends the turn of a member.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'static> {
        match &self.verb {
            TaskSubcommand::Update(args) => args.force.allowed_callers(),
            TaskSubcommand::Release(args) => args.force.allowed_callers(),
            TaskSubcommand::Delete(args) => args.force.allowed_callers(),
            TaskSubcommand::Create(_)
            | TaskSubcommand::List(_)
            | TaskSubcommand::Get(_)
            | TaskSubcommand::Claim(_)
            | TaskSubcommand::Done(_) => AllowedCallers::Everyone,
        }
    }
}

/// The subcommands of `task`.
#[derive(Debug, clap::Subcommand)]
enum TaskSubcommand {
    Create(create::CreateTaskArgs),
    List(list::ListTasksArgs),
    Get(get::GetTaskArgs),
    Update(update::UpdateTaskArgs),
    Claim(claim::ClaimTaskArgs),
    Done(done::DoneTaskArgs),
    Release(release::ReleaseTaskArgs),
    Delete(delete::DeleteTaskArgs),
}

pub(crate) fn run(context: &CommandContext, args: &TaskArgs) -> Result<ExitCode, ErrorReport> {
    let team = context.team()?;
    match &args.verb {
        TaskSubcommand::Create(args) => create::run(context, &team, args),
        TaskSubcommand::List(args) => list::run(context, &team, args),
        TaskSubcommand::Get(args) => get::run(context, &team, args),
        TaskSubcommand::Update(args) => update::run(context, &team, args),
        TaskSubcommand::Claim(args) => claim::run(context, &team, args),
        TaskSubcommand::Done(args) => done::run(context, &team, args),
        TaskSubcommand::Release(args) => release::run(context, &team, args),
        TaskSubcommand::Delete(args) => delete::run(context, &team, args),
    }
    .map(|()| ExitCode::SUCCESS)
}
