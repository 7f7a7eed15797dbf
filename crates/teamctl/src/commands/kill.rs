//! `kill`: end members without asking.

use super::shutdown::print_exits;
use crate::context::CommandContext;
use client::error::unexpected_reply;
use protocol::control::{MemberSelection, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// End members without asking: TERM, then KILL, and everything that they started
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl kill ann\n  teamctl kill ann bob")]
pub(crate) struct KillArgs {
    /// Whom
    #[arg(required = true)]
    names: Vec<String>,
}

pub(crate) fn run(here: &CommandContext, args: &KillArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("kill")?;
    let team = here.team_name(&here.root()?)?;
    match here.call_daemon(Request::Kill(MemberSelection { team, names: args.names.clone() }))? {
        Reply::Exits(reply) => Ok(print_exits(here, &reply, None, "Nobody is there.")),
        _ => Err(unexpected_reply()),
    }
}
