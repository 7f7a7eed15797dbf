//! `hide`: hides a member's pane. Its agent does not notice.

use super::send::team_of_address;
use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{MemberAddress, Request, VisibilityReply};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Hide a member's pane; its agent keeps running
///
/// Example: teamctl hide ann
///
/// The agent still gets messages, and `capture`, `interrupt` and `shutdown` work as before. `show`
/// and `attach` show the pane again.
#[derive(Debug, clap::Args)]
pub(crate) struct HideArgs {
    /// The member
    name: String,
}

impl HideArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &HideArgs) -> Result<ExitCode, ErrorReport> {
    send_and_print(context, Request::HidePane(resolve_member(context, &args.name)?))
}

/// Resolves an address to a team and a member.
pub(super) fn resolve_member(context: &CommandContext, address: &str) -> Result<MemberAddress, ErrorReport> {
    let team = team_of_address(context, address)?;
    Ok(MemberAddress { team: team.name().clone(), name: address.to_owned() })
}

/// Sends a request to hide or show a pane and prints the result.
pub(super) fn send_and_print(context: &CommandContext, request: Request) -> Result<ExitCode, ErrorReport> {
    let reply: VisibilityReply = context.request(request)?;
    output::print_result(context, &reply, &result_text(&reply));
    Ok(ExitCode::SUCCESS)
}

fn result_text(reply: &VisibilityReply) -> String {
    match reply.is_hidden {
        true => format!("{} is out of sight; it goes on in {}.", reply.name, reply.pane),
        false => format!("{} is to be seen in {}.", reply.name, reply.pane),
    }
}
