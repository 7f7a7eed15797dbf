//! `teamctl interrupt`: ends a member's current turn. The member keeps running.

use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{InterruptReply, MemberAddress, Request};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// End a member's current turn; the member keeps running
///
/// Example: teamctl interrupt ann
///
/// The processes of the turn get SIGINT, after 2 s SIGTERM, and after 2 s more SIGKILL. The command
/// returns when they have ended. The task of the turn fails; `teamctl task release ID` makes it
/// pending again. Exit code 76: the program is not started for each turn, so its turn cannot be
/// ended.
#[derive(Debug, clap::Args)]
pub(crate) struct InterruptArgs {
    /// The member
    name: String,
}

impl InterruptArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &InterruptArgs) -> Result<ExitCode, ErrorReport> {
    let team = super::send::team_of_address(context, &args.name)?;
    let member = MemberAddress { team: team.name().clone(), name: args.name.clone() };
    let reply: InterruptReply = context.request(Request::Interrupt(member))?;
    output::print_result(context, &reply, &result_text(&reply));
    Ok(ExitCode::SUCCESS)
}

fn result_text(reply: &InterruptReply) -> String {
    match reply.was_in_turn {
        true => format!("interrupted {0}'s turn; {0} is still running", reply.name),
        false => format!("{} is idle: there was no turn to end.", reply.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_and_member_names::MemberName;

    #[test]
    fn result_says_whether_there_was_a_turn() {
        let reply = |was_in_turn| InterruptReply { name: MemberName::parse("ann").unwrap(), was_in_turn };
        assert_eq!(result_text(&reply(true)), "interrupted ann's turn; ann is still running");
        assert_eq!(result_text(&reply(false)), "ann is idle: there was no turn to end.");
        assert_eq!(
            serde_json::to_value(reply(true)).unwrap(),
            serde_json::json!({"name": "ann", "was_in_turn": true})
        );
    }
}
