//! `approve`: a yes to what a member asks. Straight to the files, so it works with the daemon dead.

use super::requests::selected_teams;
use crate::context::CommandContext;
use crate::output::{self, sanitize};
use client::lead_session::led_by_this_session;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::member_request::{Answer, Approval};
use protocol::permission_mode::PermissionMode;
use serde_json::Value;
use std::process::ExitCode;
use store::now;
use store::{Error, OpenRequest, Team};

/// Say yes to what a member asks: its plan, or the use of a tool
///
/// Exit code 73: it was answered already. 67: there is no such request, or who asked has ended. 76: the member's
/// program has no such mode, or takes no other input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl approve plan_approval-1770977144590@ann@survey --mode acceptEdits\n  teamctl approve perm-1770977144590-x3k9a0b\n  teamctl approve perm-17 --input '{\"command\": \"ls\"}'"
)]
pub(crate) struct ApproveArgs {
    /// The request's id, or how it begins; see: teamctl requests
    #[arg(value_name = "ID")]
    request: String,
    /// The permission mode in which the plan is carried out [default: the lead's own, else default]
    #[arg(long, value_name = "M")]
    mode: Option<PermissionMode>,
    /// The tool's input, in place of the one that was asked for
    #[arg(long, value_name = "JSON", value_parser = parse_tool_input)]
    input: Option<Value>,
    /// Also from now on: what the request suggests is allowed with it
    #[arg(long)]
    always: bool,
}

/// An object, as every tool's input is.
fn parse_tool_input(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("cannot read it as a JSON object: {error}")),
    }
}

pub(crate) fn run(here: &CommandContext, args: &ApproveArgs) -> Result<ExitCode, ErrorReport> {
    let approval = Approval { mode: args.mode, input: args.input.clone(), apply_suggestions: args.always };
    answer_request(here, &args.request, &Answer::Approve(approval))
}

/// For `deny` too.
pub(super) fn answer_request(
    here: &CommandContext,
    id: &str,
    answer: &Answer,
) -> Result<ExitCode, ErrorReport> {
    here.require_lead("answer a request")?;
    let (caller, at) = (here.caller_in(team_of_request(here, id)?)?, now());
    // In the terminal of a session that leads it is taken for that program's doing.
    let result = match led_by_this_session(&here.directories()?) {
        Some(_) => caller.answer_request_as_program(id, answer, at)?,
        None => caller.answer_request(id, answer, at)?,
    };
    output::print_result(here, &result, &sanitize(result["message"].as_str().unwrap_or_default()));
    Ok(ExitCode::SUCCESS)
}

/// The one whose member asks that. An id that is all of a request's means that one, though others begin so.
fn team_of_request(here: &CommandContext, id: &str) -> Result<Team, ErrorReport> {
    let (root, teams) = (here.root()?, selected_teams(here)?);
    if let [only] = teams.as_slice() {
        return root.team(only).map_err(ErrorReport::from);
    }
    let mut found = Vec::new();
    let mut closed = None;
    for team in teams {
        match root.team(&team).and_then(|team| team.requests().find(id).map(|request| (team, request))) {
            Ok(one) => found.push(one),
            Err(Error::NoSuchRequest { .. }) => {}
            Err(error) if closed.as_ref().is_some_and(|closed| is_about_request(closed, id)) => drop(error),
            Err(error) => closed = Some(error),
        }
    }
    let is_whole = |(_, request): &(Team, OpenRequest)| request.request.id().as_str() == id;
    if found.iter().any(is_whole) {
        found.retain(is_whole);
    } else if let Some(error) = closed.take_if(|error| is_about_request(error, id)) {
        return Err(ErrorReport::from(error));
    }
    match (found.len(), closed) {
        (1, _) => Ok(found.remove(0).0),
        (0, Some(error)) => Err(ErrorReport::from(error)),
        (0, None) => {
            let message = format!("cannot answer {id}: no team has such a request");
            Err(ErrorReport::new(ErrorKind::NotFound, message).with_help("see them with: teamctl requests"))
        }
        _ => {
            let names: Vec<&str> = found.iter().map(|(team, _)| team.name().as_str()).collect();
            let message = format!("cannot answer {id}: it could be one of {}", names.join(", "));
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("name the team with -t TEAM"))
        }
    }
}

/// Whether it says why the request of that whole id takes no answer.
fn is_about_request(error: &Error, wanted: &str) -> bool {
    match error {
        Error::AlreadyAnswered { id, .. } | Error::Withdrawn { id, .. } | Error::AskerGone { id, .. } => {
            id == wanted
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_an_object() {
        assert!(parse_tool_input("{\"a\": 1}").is_ok());
        assert!(
            parse_tool_input("[]").is_err()
                && parse_tool_input("{").is_err()
                && parse_tool_input("x").is_err()
        );
    }
}
