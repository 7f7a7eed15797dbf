//! `capture`: what a member's pane shows.

use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{self, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Print what a member's pane shows
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl capture ann\n  teamctl capture ann --lines 500")]
pub(crate) struct CaptureArgs {
    /// The member
    name: String,
    /// That many lines, counted from the end, of screen and history [default: the screen]
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
}

pub(crate) fn run(here: &CommandContext, args: &CaptureArgs) -> Result<ExitCode, ErrorReport> {
    let team = here.team_name(&here.root()?)?;
    let request = control::CapturePaneRequest { team, name: args.name.clone(), lines: args.lines };
    let Reply::CapturePane(reply) = here.call_daemon(Request::CapturePane(request))? else {
        return Err(unexpected_reply());
    };
    let screen = output::sanitize(reply.screen.trim_end_matches('\n'));
    output::print_result(here, &reply, &screen);
    Ok(ExitCode::SUCCESS)
}
