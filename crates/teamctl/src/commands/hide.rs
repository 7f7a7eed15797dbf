//! `hide`: a member's pane out of sight. Its agent notices nothing.

use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{MemberAddress, Reply, Request, VisibilityReply};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Take a member's pane out of sight
///
/// Its agent goes on, gets its mail, can be captured, interrupted and ended as before. One that is hidden already
/// stays so; `show` brings it back, and so does `attach`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl hide ann\n  teamctl show ann")]
pub(crate) struct HideArgs {
    /// Whose
    name: String,
}

pub(crate) fn run(here: &CommandContext, args: &HideArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("hide a pane")?;
    send_and_print(here, Request::HidePane(resolve_member(here, &args.name)?))
}

/// The member that an address names.
pub(super) fn resolve_member(here: &CommandContext, address: &str) -> Result<MemberAddress, ErrorReport> {
    let team = super::send::team_of_address(here, address)?;
    Ok(MemberAddress { team: team.name().clone(), name: address.to_owned() })
}

/// Asks, and prints what came of it.
pub(super) fn send_and_print(here: &CommandContext, request: Request) -> Result<ExitCode, ErrorReport> {
    match here.call_daemon(request)? {
        Reply::Visibility(reply) => {
            output::print_result(here, &reply, &result_text(&reply));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected_reply()),
    }
}

fn result_text(reply: &VisibilityReply) -> String {
    match reply.is_hidden {
        true => format!("{} is out of sight; it goes on in {}.", reply.name, reply.pane),
        false => format!("{} is to be seen in {}.", reply.name, reply.pane),
    }
}
