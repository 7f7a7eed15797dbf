//! `show`: a hidden member's pane back among the others.

use super::hide;
use crate::context::CommandContext;
use protocol::control::Request;
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Bring a hidden member's pane back
///
/// Beside the panes of its team where there is room, else in a window of its own. One that is in sight stays where
/// it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl show ann")]
pub(crate) struct ShowArgs {
    /// Whose
    name: String,
}

pub(crate) fn run(here: &CommandContext, args: &ShowArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("show a pane")?;
    hide::send_and_print(here, Request::ShowPane(hide::resolve_member(here, &args.name)?))
}
