//! `show`: shows a hidden member's pane again.

use super::hide_pane;
use crate::command_context::CommandContext;
use protocol::control_socket::Request;
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Show a hidden member's pane again
///
/// Example: teamctl show ann
///
/// The pane opens beside the panes of its team if there is room, else in a new window. A pane that
/// is not hidden stays where it is.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The member
    name: String,
}

pub(crate) fn run(context: &CommandContext, args: &ShowArgs) -> Result<ExitCode, ErrorReport> {
    hide_pane::send_and_print(context, Request::ShowPane(hide_pane::resolve_member(context, &args.name)?))
}
