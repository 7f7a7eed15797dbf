//! `requests`: lists the open requests of members, from the files alone.

use crate::add_options_to_suggested_commands;
use crate::command_context::CommandContext;
use crate::output::{self, sanitize};
use client::member_request_view::{self, MemberRequestView};
use client::suggested_commands::SuggestedCommands;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::single_line::single_line;
use protocol::team_and_member_names::TeamName;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::{Root, now};

/// List requests that wait for your answer
///
/// Example: teamctl requests
///
/// Members ask for the approval of plans, and for permission to use tools. Each request is shown in
/// full, with the id for `approve` and `deny`. Without -t, the requests of all teams are listed.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestsArgs {}

pub(crate) fn run(context: &CommandContext, _: &RequestsArgs) -> Result<ExitCode, ErrorReport> {
    let root = context.root()?;
    let teams = context.candidate_teams(&root)?;
    let (mut requests, mut exit_code) = (Vec::new(), ExitCode::SUCCESS);
    for team in &teams {
        match open_requests(context, &root, team) {
            Ok(team_requests) => requests.extend(team_requests),
            // The requests of the other teams are listed all the same.
            Err(error) if teams.len() > 1 => {
                output::print_partial_error(context, &error);
                exit_code = ExitCode::from(ErrorKind::Partial.exit_code());
            }
            Err(error) => return Err(error),
        }
    }
    let (sender, commands) = match teams.as_slice() {
        [team] => (
            SenderFormat::Name,
            add_options_to_suggested_commands::suggested_commands_for_team(context, team)?,
        ),
        // The commands need no team, because an id identifies its team.
        _ => (SenderFormat::NameAtTeam, add_options_to_suggested_commands::suggested_commands(context)),
    };
    print_requests(context, &requests, sender, &commands);
    Ok(exit_code)
}

/// How the sender of a request is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderFormat {
    Name,
    NameAtTeam,
}

/// An open request, or one of a suspended member, and its team.
pub(super) struct TeamRequest {
    team: TeamName,
    pub(super) view: MemberRequestView,
    /// Whether the sender is suspended. The request can be answered when it is resumed.
    is_suspended: bool,
}

/// The requests of a team that are open, or whose sender is suspended.
pub(super) fn open_requests(
    context: &CommandContext,
    root: &Root,
    team: &TeamName,
) -> Result<Vec<TeamRequest>, ErrorReport> {
    let caller = context.caller_in(root.team(team)?);
    let (policy, mut scan) = (caller.policy()?, caller.team().requests().scan()?);
    let suspended = std::mem::take(&mut scan.suspended).into_iter();
    let suspended = suspended.map(|request| (MemberRequestView { request, policy_answer: None }, true));
    let open = member_request_view::open_requests(&policy, scan).into_iter().map(|view| (view, false));
    let views = open.chain(suspended);
    Ok(views.map(|(view, is_suspended)| TeamRequest { team: team.clone(), view, is_suspended }).collect())
}

fn print_requests(
    context: &CommandContext,
    requests: &[TeamRequest],
    sender: SenderFormat,
    commands: &SuggestedCommands,
) {
    if context.args.json {
        let requests: Vec<Value> = requests.iter().map(request_json).collect();
        return output::print_result(context, &json!({"requests": requests}), "");
    }
    if requests.is_empty() {
        return output::print_result(context, &json!({}), "no open requests");
    }
    let now = now();
    let texts: Vec<String> = requests.iter().map(|request| request_text(request, sender, now)).collect();
    output::print_result(context, &json!({}), &texts.join("\n\n"));
    let approve = commands.command(&["approve", "ID"]);
    let deny = commands.command(&["deny", "ID", "--reason", "TEXT"]);
    output::print_result(context, &json!({}), &format!("\nAnswer with: {approve}, or: {deny}"));
}

/// The keys are those of `--json`.
pub(super) fn request_json(TeamRequest { team, view, is_suspended }: &TeamRequest) -> Value {
    let MemberRequestView { request, policy_answer } = view;
    let body: Value =
        serde_json::from_str(&protocol::format_preserving_json::replace_lone_surrogates(&request.text))
            .unwrap_or(Value::Null);
    let mut object = json!({
        "team": team,
        "id": request.request.id(),
        "kind": request.request.kind(),
        "from": request.from,
        "since": request.asked_at,
        "body": body,
    });
    if *is_suspended {
        object["is_suspended"] = json!(true);
    }
    if let Some((at, is_approved)) = policy_answer {
        object["times_out_at"] = json!(at);
        object["on_timeout"] = json!(if *is_approved { "approve" } else { "deny" });
    }
    object
}

/// Formats a request for people: a heading with the sender, the id and the times of the request,
/// and below the heading the indented request. `now` is in ms since the epoch.
fn request_text(
    TeamRequest { team, view, is_suspended }: &TeamRequest,
    sender: SenderFormat,
    now: u64,
) -> String {
    let request = &view.request;
    let team = match sender {
        SenderFormat::Name => String::new(),
        SenderFormat::NameAtTeam => format!("@{team}"),
    };
    let timeout = view.policy_answer.map_or_else(String::new, |(end, is_approved)| {
        let answer = if is_approved { "approved" } else { "denied" };
        format!(", {answer} in {}", two_unit_duration(end.saturating_sub(now)))
    });
    let since = match request.asked_at {
        0 => String::new(),
        since => format!("  since {}", two_unit_duration(now.saturating_sub(since))),
    };
    let suspended = if *is_suspended { ", suspended: answer it after teamctl up --resume" } else { "" };
    let from = single_line(request.from.as_str());
    let heading = format!("{from}{team}  {}{since}{timeout}{suspended}", request.request.id());
    let body = member_request_view::request_text(&request.request);
    let body: Vec<String> = sanitize(&body).lines().map(|line| format!("    {line}")).collect();
    format!("{}\n{}", sanitize(&heading), body.join("\n"))
}

/// `59s`, `59m` or `3h5m`.
fn two_unit_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_has_one_or_two_units() {
        assert_eq!([999, 61_000, 3_660_000].map(two_unit_duration), ["0s", "1m", "1h1m"]);
    }
}
