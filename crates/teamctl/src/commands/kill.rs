//! `teamctl kill`: ends members by force.

use super::shutdown::{check_no_lead, print_exits};
use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use protocol::control_socket::{ExitsReply, MemberSelection, Request};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Kill members and all processes that they started
///
/// Example: teamctl kill ann bob
///
/// The processes get SIGTERM, then SIGKILL.
#[derive(Debug, clap::Args)]
pub(crate) struct KillArgs {
    /// Members to kill
    #[arg(required = true)]
    names: Vec<String>,
}

impl KillArgs {
    /// The members on whose hosts the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(&self.names)
    }
}

pub(crate) fn run(context: &CommandContext, args: &KillArgs) -> Result<ExitCode, ErrorReport> {
    check_no_lead("kill", &args.names)?;
    let team = context.team_of_members(&context.root()?, &args.names)?;
    let members = MemberSelection { team, names: args.names.clone() };
    let reply: ExitsReply = context.request(Request::Kill(members))?;
    Ok(print_exits(context, &reply, None, "no members"))
}
