//! `capture`: what a member's pane shows.

use crate::here::{Here, misunderstood};
use crate::output;
use protocol::control::{self, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Print what a member's pane shows
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl capture ann\n  teamctl capture ann --lines 500")]
pub(crate) struct Capture {
    /// The member
    name: String,
    /// That many lines, counted from the end, of screen and history [default: the screen]
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
}

pub(crate) fn run(here: &Here, args: &Capture) -> Result<ExitCode, ErrorReport> {
    let team = here.team_name(&here.root()?)?;
    let request = control::CapturePaneRequest { team, name: args.name.clone(), lines: args.lines };
    let Reply::CapturePane(reply) = here.ask(Request::CapturePane(request))? else {
        return Err(misunderstood());
    };
    let screen = output::clean(reply.screen.trim_end_matches('\n'));
    output::done(here, &reply, &screen);
    Ok(ExitCode::SUCCESS)
}
