//! `show`: a hidden member's pane back among the others.

use super::hide;
use crate::here::Here;
use protocol::control::Request;
use protocol::fault::Fault;
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

pub(crate) fn run(here: &Here, args: &Show) -> Result<ExitCode, Fault> {
    here.lead_only("show a pane")?;
    hide::told(here, Request::Show(hide::locate(here, &args.name)?))
}
