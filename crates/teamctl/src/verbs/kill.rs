//! `kill`: end members without asking.

use super::shutdown::endings;
use crate::here::{Here, misunderstood};
use protocol::control::{Reply, Request, Targets};
use protocol::fault::Fault;
use std::process::ExitCode;

/// End members without asking: TERM, then KILL, and everything that they started
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl kill ann\n  teamctl kill ann bob")]
pub(crate) struct Kill {
    /// Whom
    #[arg(required = true)]
    names: Vec<String>,
}

pub(crate) fn run(here: &Here, args: &Kill) -> Result<ExitCode, Fault> {
    here.lead_only("kill")?;
    let team = here.team_name(&here.root()?)?;
    match here.ask(Request::Kill(Targets { team, names: args.names.clone() }))? {
        Reply::Endings(reply) => Ok(endings(here, &reply, None, "Nobody is there.")),
        _ => Err(misunderstood()),
    }
}
