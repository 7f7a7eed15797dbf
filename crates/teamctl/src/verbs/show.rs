//! `show`: a hidden member's pane back among the others.

use super::hide;
use crate::here::Here;
use protocol::control::Request;
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Bring a hidden member's pane back
///
/// Beside the panes of its team where there is room, else in a window of its own. One that is in sight stays where
/// it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl show ann")]
pub(crate) struct Show {
    /// Whose
    name: String,
}

pub(crate) fn run(here: &Here, args: &Show) -> Result<ExitCode, ErrorReport> {
    here.lead_only("show a pane")?;
    hide::told(here, Request::ShowPane(hide::locate(here, &args.name)?))
}
