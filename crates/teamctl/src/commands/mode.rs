//! `mode`: the permission mode of a member while it runs, or of the lead.

use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{Reply, Request, SetModeReply, SetModeRequest};
use protocol::error::ErrorReport;
use protocol::permission_mode::PermissionMode;
use std::process::ExitCode;

/// Change a member's permission mode while it runs, or the lead's
///
/// A program that is run a turn at a time has it from its next turn on; Claude Code as a teammate and agents driven by
/// their protocol as soon as they read it. One that plans leaves that by the approval of its plan alone (76), and a
/// program that takes a mode at its start alone is refused (76). With team-lead: the mode that a member goes on in when
/// its plan is approved, and with delegate a program that leads may do nothing but lead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl mode ann acceptEdits\n  teamctl mode team-lead delegate")]
pub(crate) struct ModeArgs {
    /// Whose; team-lead is the lead
    name: String,
    /// Which: default, acceptEdits, bypassPermissions, plan, delegate, dontAsk, auto
    mode: PermissionMode,
}

pub(crate) fn run(here: &CommandContext, args: &ModeArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("change a mode")?;
    let team = super::send::team_of_address(here, &args.name)?;
    let order = SetModeRequest { team: team.name().clone(), name: args.name.clone(), mode: args.mode };
    match here.call_daemon(Request::SetMode(order))? {
        Reply::SetMode(reply) => {
            output::print_result(here, &reply, &result_text(&reply));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected_reply()),
    }
}

fn result_text(reply: &SetModeReply) -> String {
    match reply.name.is_lead() {
        true => format!("The lead's mode is {} now.", reply.mode),
        false => format!("{} is told to go on in the mode {}.", reply.name, reply.mode),
    }
}
