//! `interrupt`: end a member's turn, not the member.

use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{InterruptReply, MemberAddress, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// End a member's turn, not the member
///
/// What its turn runs gets INT, after 2 s TERM, after 2 s more KILL; answers when it has ended. The task that it
/// worked on has failed with that; give it back with: teamctl task release ID. A program that runs for its whole
/// life has no turn that could be ended (76).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl interrupt ann")]
pub(crate) struct InterruptArgs {
    /// Whose
    name: String,
}

pub(crate) fn run(here: &CommandContext, args: &InterruptArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("interrupt")?;
    let team = super::send::team_of_address(here, &args.name)?;
    match here.call_daemon(Request::Interrupt(MemberAddress {
        team: team.name().clone(),
        name: args.name.clone(),
    }))? {
        Reply::Interrupt(reply) => {
            output::print_result(here, &reply, &result_text(&reply));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected_reply()),
    }
}

fn result_text(reply: &InterruptReply) -> String {
    match reply.was_in_turn {
        true => format!("{}'s turn is ended; it lives on.", reply.name),
        false => format!("{} is idle: there was no turn to end.", reply.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::name::AgentName;

    #[test]
    fn it_says_what_became_of_the_turn() {
        let reply = |turn| InterruptReply { name: AgentName::parse("ann").unwrap(), was_in_turn: turn };
        assert_eq!(result_text(&reply(true)), "ann's turn is ended; it lives on.");
        assert_eq!(result_text(&reply(false)), "ann is idle: there was no turn to end.");
        assert_eq!(
            serde_json::to_value(reply(true)).unwrap(),
            serde_json::json!({"name": "ann", "was_in_turn": true})
        );
    }
}
