//! `capture`: prints the screen of a member's pane.

use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{CapturePaneReply, CapturePaneRequest, Request};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Print the screen of a member's pane
///
/// Example: teamctl capture ann
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl capture ann --lines 500")]
pub(crate) struct CaptureArgs {
    /// The member
    pub(crate) name: String,
    /// Print the last N lines of history and screen [default: the screen]
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
}

impl CaptureArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &CaptureArgs) -> Result<ExitCode, ErrorReport> {
    let team = context.team_of_members(&context.root()?, std::slice::from_ref(&args.name))?;
    let request = CapturePaneRequest { team, name: args.name.clone(), lines: args.lines };
    let reply: CapturePaneReply = context.request(Request::CapturePane(request))?;
    let screen = output::sanitize(reply.screen.trim_end_matches('\n'));
    output::print_result(context, &reply, &screen);
    Ok(ExitCode::SUCCESS)
}
