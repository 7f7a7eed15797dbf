//! `hide`: a member's pane out of sight. Its agent notices nothing.

use crate::here::{Here, misunderstood};
use crate::output;
use protocol::control::{MemberAddress, Reply, Request, VisibilityReply};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Take a member's pane out of sight
///
/// Its agent goes on, gets its mail, can be captured, interrupted and ended as before. One that is hidden already
/// stays so; `show` brings it back, and so does `attach`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl hide ann\n  teamctl show ann")]
pub(crate) struct Hide {
    /// Whose
    name: String,
}

pub(crate) fn run(here: &Here, args: &Hide) -> Result<ExitCode, ErrorReport> {
    here.lead_only("hide a pane")?;
    told(here, Request::HidePane(locate(here, &args.name)?))
}

/// The member that an address names.
pub(super) fn locate(here: &Here, address: &str) -> Result<MemberAddress, ErrorReport> {
    let team = super::send::team_of(here, address)?;
    Ok(MemberAddress { team: team.name().clone(), name: address.to_owned() })
}

/// Asks, and prints what came of it.
pub(super) fn told(here: &Here, request: Request) -> Result<ExitCode, ErrorReport> {
    match here.ask(request)? {
        Reply::Visibility(reply) => {
            output::done(here, &reply, &sentence(&reply));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(misunderstood()),
    }
}

fn sentence(reply: &VisibilityReply) -> String {
    match reply.hidden {
        true => format!("{} is out of sight; it goes on in {}.", reply.name, reply.pane),
        false => format!("{} is to be seen in {}.", reply.name, reply.pane),
    }
}
