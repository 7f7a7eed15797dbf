//! `task`: the task list, one file per subverb. All rules (links, owners, what may follow what) are the
//! store's; here is who may ask, and how it is told.

mod claim;
mod create;
mod delete;
mod done;
mod get;
mod list;
mod release;
mod show;
mod update;

use crate::here::Here;
use crate::output;
use protocol::error::ErrorReport;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Work on the task list
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task create 'count the lines' --metadata '{\"command\": \"wc -l src/*.rs\"}'\n  teamctl task list\n  teamctl task claim\n  teamctl task done 3"
)]
pub(crate) struct Task {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with it.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    Create(create::Create),
    List(list::List),
    Get(get::Get),
    Update(update::Update),
    Claim(claim::Claim),
    Done(done::Done),
    Release(release::Release),
    Delete(delete::Delete),
}

pub(crate) fn run(here: &Here, args: &Task) -> Result<ExitCode, ErrorReport> {
    let team = here.team()?;
    match &args.verb {
        Verb::Create(args) => create::run(here, &team, args),
        Verb::List(args) => list::run(here, &team, args),
        Verb::Get(args) => get::run(here, &team, args),
        Verb::Update(args) => update::run(here, &team, args),
        Verb::Claim(args) => claim::run(here, &team, args),
        Verb::Done(args) => done::run(here, &team, args),
        Verb::Release(args) => release::run(here, &team, args),
        Verb::Delete(args) => delete::run(here, &team, args),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Tells of one task: the task for scripts, the sentence for people.
fn told(here: &Here, task: &protocol::task::Task, sentence: &str) {
    output::done(here, &json!({"task": task}), &output::clean(sentence));
}

/// For clap's `value_parser`.
fn metadata(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("cannot read it as a JSON object: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_object() {
        assert_eq!(metadata(r#"{"a":1}"#).map(|metadata| metadata.len()), Ok(1));
        assert!(metadata("[1]").is_err() && metadata("null").is_err() && metadata("{").is_err());
    }
}
