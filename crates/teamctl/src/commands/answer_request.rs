//! Answers a member's request, for the commands `approve` and `deny`. The answer is written to the
//! team files directly, so these commands work without a daemon.

use crate::command_context::CommandContext;
use crate::output::{self, sanitize};
use client::find_lead_session_of_caller::find_lead_session;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_request::Answer;
use std::process::ExitCode;
use store::{Error, OpenRequest, Team, now};

/// Answers the request with this id, or the only request whose id begins with `id`.
pub(super) fn answer_request(
    context: &CommandContext,
    id: &str,
    answer: &Answer,
) -> Result<ExitCode, ErrorReport> {
    let (caller, at) = (context.caller_in(team_of_request(context, id)?), now());
    // In a lead session's terminal, the answer may come from the program and not from a person.
    let result = match find_lead_session(&context.directories()?) {
        Some(_) => caller.answer_request_as_program(id, answer, at)?,
        None => caller.answer_request(id, answer, at)?,
    };
    output::print_result(context, &result, &sanitize(result["message"].as_str().unwrap_or_default()));
    Ok(ExitCode::SUCCESS)
}

/// The team with the request. A complete id is preferred to ids that begin with it.
fn team_of_request(context: &CommandContext, id: &str) -> Result<Team, ErrorReport> {
    let root = context.root()?;
    let names = context.candidate_teams(&root)?;
    if let [only] = names.as_slice() {
        return Ok(root.team(only)?);
    }
    let (mut found, mut rejection) = (Vec::new(), None);
    for name in names {
        match root.team(&name).and_then(|team| team.requests().find(id).map(|request| (team, request))) {
            Ok(team_and_request) => found.push(team_and_request),
            Err(Error::NoSuchRequest { .. }) => {}
            // The loop has already found the request in another team. That team's error,
            // `rejection`, says why the request can't be answered. So the error of this team is
            // ignored.
            Err(_) if rejection.as_ref().is_some_and(|error| is_about_request(error, id)) => {}
            Err(error) => rejection = Some(error),
        }
    }
    let has_whole_id = |(_, request): &(Team, OpenRequest)| request.request.id().as_str() == id;
    if found.iter().any(has_whole_id) {
        found.retain(has_whole_id);
    } else if let Some(error) = rejection.take_if(|error| is_about_request(error, id)) {
        return Err(error.into());
    }
    match (found.len(), rejection) {
        (1, _) => Ok(found.remove(0).0),
        (0, Some(error)) => Err(error.into()),
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

/// Whether the error says why exactly the request `request_id` takes no answer.
fn is_about_request(error: &Error, request_id: &str) -> bool {
    match error {
        Error::AlreadyAnswered { id, .. } | Error::Withdrawn { id, .. } | Error::AskerGone { id, .. } => {
            id == request_id
        }
        _ => false,
    }
}
