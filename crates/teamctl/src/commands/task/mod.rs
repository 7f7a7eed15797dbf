//! `task`: the task list, one file per subverb. All rules (links, owners, what may follow what) are the
//! store's; here is who may ask, and how it is told.

mod claim;
mod create;
mod delete;
mod done;
mod format;
mod get;
mod list;
mod release;
mod update;

use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Work on the task list
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task create 'count the lines' --metadata '{\"command\": \"wc -l src/*.rs\"}'\n  teamctl task list\n  teamctl task claim\n  teamctl task done 3"
)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    verb: TaskSubcommand,
}

/// What to do with it.
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

pub(crate) fn run(here: &CommandContext, args: &TaskArgs) -> Result<ExitCode, ErrorReport> {
    let team = here.team()?;
    match &args.verb {
        TaskSubcommand::Create(args) => create::run(here, &team, args),
        TaskSubcommand::List(args) => list::run(here, &team, args),
        TaskSubcommand::Get(args) => get::run(here, &team, args),
        TaskSubcommand::Update(args) => update::run(here, &team, args),
        TaskSubcommand::Claim(args) => claim::run(here, &team, args),
        TaskSubcommand::Done(args) => done::run(here, &team, args),
        TaskSubcommand::Release(args) => release::run(here, &team, args),
        TaskSubcommand::Delete(args) => delete::run(here, &team, args),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Tells of one task: the task for scripts, the sentence for people.
fn print_task(here: &CommandContext, task: &protocol::task::Task, sentence: &str) {
    output::print_result(here, &json!({"task": task}), &output::sanitize(sentence));
}

/// For clap's `value_parser`.
fn parse_metadata(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("cannot read it as a JSON object: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_object() {
        assert_eq!(parse_metadata(r#"{"a":1}"#).map(|metadata| metadata.len()), Ok(1));
        assert!(
            parse_metadata("[1]").is_err() && parse_metadata("null").is_err() && parse_metadata("{").is_err()
        );
    }
}
