//! `kill`: end members without asking.

use super::shutdown::endings;
use crate::here::{Here, misunderstood};
use protocol::control::{MemberSelection, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// End members without asking: TERM, then KILL, and everything that they started
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl kill ann\n  teamctl kill ann bob")]
pub(crate) struct Kill {
    /// Whom
    #[arg(required = true)]
    names: Vec<String>,
}

pub(crate) fn run(here: &Here, args: &Kill) -> Result<ExitCode, ErrorReport> {
    here.lead_only("kill")?;
    let team = here.team_name(&here.root()?)?;
    match here.ask(Request::Kill(MemberSelection { team, names: args.names.clone() }))? {
        Reply::Exits(reply) => Ok(endings(here, &reply, None, "Nobody is there.")),
        _ => Err(misunderstood()),
    }
}
