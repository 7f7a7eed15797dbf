//! `teamctl mode`: sets the permission mode of a running member or of the lead.

use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{Request, SetModeReply, SetModeRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::permission_mode::PermissionMode;
use std::process::ExitCode;

/// Set the permission mode of a member or the lead
///
/// Example: teamctl mode ann acceptEdits
///
/// A program that is started for each turn uses the mode from its next turn on. Claude Code as a
/// teammate, and programs that speak the Agent Client Protocol, switch when they read the new mode.
/// Exit code 76: the program takes a mode only when it starts, or the member waits in plan mode for
/// the approval of its plan.
///
/// The mode of team-lead is what a member gets when its plan is approved. In mode delegate, an
/// agent that leads can only coordinate.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl mode team-lead delegate")]
pub(crate) struct ModeArgs {
    /// The member, or team-lead
    name: String,
    /// The mode: default, acceptEdits, bypassPermissions, plan, delegate, dontAsk, auto
    mode: PermissionMode,
}

impl ModeArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &ModeArgs) -> Result<ExitCode, ErrorReport> {
    let team = super::send::team_of_address(context, &args.name)?;
    let request = SetModeRequest { team: team.name().clone(), name: args.name.clone(), mode: args.mode };
    let reply: SetModeReply = context.request(Request::SetMode(request))?;
    output::print_result(context, &reply, &result_text(&reply));
    Ok(ExitCode::SUCCESS)
}

fn result_text(reply: &SetModeReply) -> String {
    match reply.name.is_lead() {
        true => format!("The lead's mode is {} now.", reply.mode),
        false => format!("{} was asked to go on in the mode {}.", reply.name, reply.mode),
    }
}
