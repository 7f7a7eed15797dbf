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

use crate::here::{Here, fault};
use crate::output;
use protocol::control::Commands;
use protocol::fault::{Fault, Kind};
use protocol::name::AgentName;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use store::Team;

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

pub(crate) fn run(here: &Here, args: &Task) -> Result<ExitCode, Fault> {
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

/// The member of that name, as the team spells it.
fn member(team: &Team, name: &str) -> Result<AgentName, Fault> {
    team.member(name).map(|member| member.name).map_err(fault)
}

/// For clap's `value_parser`.
fn metadata(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("cannot read it as a JSON object: {error}"))
}

/// A worker runs the command of a task: who may put one there may run anything as the worker.
fn refuse_command(here: &Here, team: &Team, metadata: Option<&Map<String, Value>>) -> Result<(), Fault> {
    if here.me().is_lead() || !metadata.is_some_and(|metadata| metadata.contains_key("command")) {
        return Ok(());
    }
    let policy = here.state()?.read(&format!("policy-{}.json", team.name())).map_err(fault)?;
    if commands(policy.as_deref()) == Commands::Any {
        return Ok(());
    }
    let fault =
        Fault::new(Kind::NotPermitted, "cannot put a command into a task: that is for the lead or a person");
    Err(fault.hinted("ask the lead: teamctl send team-lead TEXT"))
}

/// What the daemon wrote down of the team's policy.
#[derive(serde::Deserialize)]
struct Policy {
    commands: Commands,
}

/// Whatever is not said in so many words is the lead's.
fn commands(policy: Option<&[u8]>) -> Commands {
    let policy = policy.and_then(|bytes| serde_json::from_slice(bytes).ok());
    policy.map_or(Commands::Lead, |Policy { commands }| commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_object() {
        assert_eq!(metadata(r#"{"a":1}"#).map(|metadata| metadata.len()), Ok(1));
        assert!(metadata("[1]").is_err() && metadata("null").is_err() && metadata("{").is_err());
    }

    #[test]
    fn only_a_policy_that_says_so_lets_any_member_put_a_command() {
        assert_eq!(commands(Some(br#"{"commands":"any","more":1}"#)), Commands::Any);
        for other in [&br#"{"commands":"lead"}"#[..], br#"{"commands":"all"}"#, b"{}", b"any", b"\xff", b""] {
            assert_eq!(commands(Some(other)), Commands::Lead, "{other:?}");
        }
        assert_eq!(commands(None), Commands::Lead);
    }
}
