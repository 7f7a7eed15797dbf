//! `requests`: what members ask and nobody has answered, shown whole. Reads the files alone.

use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output::{self, sanitize};
use client::lead_session::led_by_this_session;
use client::request_view::{self, RequestView};
use client::suggested_commands::SuggestedCommands;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use protocol::text::single_line;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::Root;
use store::now;

/// What members ask: plans that wait for approval, and questions for permission
///
/// Each is shown whole, with the id that approve and deny take. Without --team those of all teams.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl requests\n  teamctl requests -t survey --json\n  teamctl approve perm-1770977144590-x3k9a0b"
)]
pub(crate) struct RequestsArgs {}

pub(crate) fn run(here: &CommandContext, _: &RequestsArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("see what members ask")?;
    let (root, teams) = (here.root()?, selected_teams(here)?);
    let (mut open, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for team in &teams {
        match open_requests(here, &root, team) {
            Ok(waiting) => open.extend(waiting),
            // What the others ask is told all the same.
            Err(fault) if teams.len() > 1 => {
                output::print_partial_error(here, &fault);
                code = ExitCode::from(ErrorKind::Partial.exit_code());
            }
            Err(fault) => return Err(fault),
        }
    }
    let typed = match teams.as_slice() {
        [only] => command_rewriter::suggested_commands_for_team(here, only)?,
        // An id says whose request it is.
        _ => command_rewriter::suggested_commands(here),
    };
    print_requests(here, &open, teams.len() > 1, &typed);
    Ok(code)
}

/// Of which teams: the one that was named or that is led from here, else all of ours.
pub(super) fn selected_teams(here: &CommandContext) -> Result<Vec<TeamName>, ErrorReport> {
    let root = here.root()?;
    let ours: Vec<TeamName> = root.teams()?.into_iter().filter(|team| !team.is_claude_session()).collect();
    if here.args.team.is_some() || ours.len() < 2 || led_by_this_session(&here.directories()?).is_some() {
        return Ok(vec![here.team_name(&root)?]);
    }
    Ok(ours)
}

/// A request of one of the teams.
struct TeamRequest {
    team: TeamName,
    waiting: RequestView,
}

fn open_requests(
    here: &CommandContext,
    root: &Root,
    team: &TeamName,
) -> Result<Vec<TeamRequest>, ErrorReport> {
    let caller = here.caller_in(root.team(team)?)?;
    let (policy, asking) = (caller.policy()?, caller.team().requests().scan()?);
    let all = request_view::open_requests(&policy, asking).into_iter();
    Ok(all.map(|waiting| TeamRequest { team: team.clone(), waiting }).collect())
}

fn print_requests(here: &CommandContext, open: &[TeamRequest], several: bool, typed: &SuggestedCommands) {
    if here.args.json {
        let requests: Vec<Value> = open.iter().map(request_json).collect();
        return output::print_result(here, &json!({"requests": requests}), "");
    }
    let at = now();
    let told: Vec<String> = open.iter().map(|of| result_text(of, several, at)).collect();
    match told.as_slice() {
        [] => output::print_result(here, &json!({}), "Nobody waits for an answer."),
        told => {
            output::print_result(here, &json!({}), &told.join("\n\n"));
            let [yes, no] = [&["approve", "ID"][..], &["deny", "ID", "--reason", "R"]];
            let (yes, no) = (typed.command(yes), typed.command(no));
            output::print_result(here, &json!({}), &format!("\nAnswer with: {yes}, or: {no}"));
        }
    }
}

fn request_json(of: &TeamRequest) -> Value {
    let TeamRequest { team, waiting: RequestView { request, policy_answer: ends } } = of;
    let body: Value =
        serde_json::from_str(&protocol::json::replace_lone_surrogates(&request.text)).unwrap_or(Value::Null);
    let mut object = json!({
        "team": team,
        "id": request.request.id(),
        "kind": request.request.kind(),
        "from": request.from,
        "since": request.asked_at,
        "body": body,
    });
    if let Some((at, approved)) = ends {
        object["times_out_at"] = json!(at);
        object["on_timeout"] = json!(if *approved { "approve" } else { "deny" });
    }
    object
}

fn result_text(of: &TeamRequest, several: bool, at: u64) -> String {
    let TeamRequest { team, waiting } = of;
    let request = &waiting.request;
    let team = if several { format!("@{team}") } else { String::new() };
    let ends = waiting.policy_answer.map_or_else(String::new, |(end, approved)| {
        let word = if approved { "approved" } else { "denied" };
        format!(", {word} in {}", short_age(end.saturating_sub(at)))
    });
    let since = match request.asked_at {
        0 => String::new(),
        since => format!("  since {}", short_age(at.saturating_sub(since))),
    };
    let head = format!("{}{team}  {}{since}{ends}", single_line(request.from.as_str()), request.request.id());
    let body = request_view::request_text(&request.request);
    let body: Vec<String> = sanitize(&body).lines().map(|line| format!("    {line}")).collect();
    format!("{}\n{}", sanitize(&head), body.join("\n"))
}

fn short_age(ms: u64) -> String {
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
    fn a_time_is_told_in_one_or_two_units() {
        assert_eq!([short_age(999), short_age(61_000), short_age(3_660_000)], ["0s", "1m", "1h1m"]);
    }
}
