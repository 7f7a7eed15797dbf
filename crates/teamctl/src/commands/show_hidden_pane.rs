//! `show`: shows a hidden member's pane again.

use super::hide_pane;
use crate::acted_on_members::ActedOnMembers;
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

impl ShowArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &ShowArgs) -> Result<ExitCode, ErrorReport> {
    hide_pane::send_and_print(context, Request::ShowPane(hide_pane::resolve_member(context, &args.name)?))
}
