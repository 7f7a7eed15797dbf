//! `delete`: remove a team and its files.

use crate::here::Here;
use crate::output;
use protocol::control::{self, Reply, Request};
use protocol::fault::Fault;
use std::process::ExitCode;

/// Remove a team: its configuration, inboxes and tasks
///
/// Refused (76) while members live; --force ends them first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl delete survey\n  teamctl delete survey --force")]
pub(crate) struct Delete {
    /// Which [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// End its members first
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(here: &Here, args: &Delete) -> Result<ExitCode, Fault> {
    here.lead_only("delete a team")?;
    let mut here = Here::new(here.global.clone());
    here.global.team = args.name.clone().or(here.global.team);
    let team = here.team_name(&here.root()?)?;
    if let Reply::Delete(reply) = here.ask(Request::Delete(control::Delete { team, force: args.force }))? {
        output::done(&here, &reply, &format!("{}.", reply.message));
    }
    Ok(ExitCode::SUCCESS)
}
