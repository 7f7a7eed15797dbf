//! `requests`: what members ask and nobody has answered, shown whole. Reads the files alone.

use super::typed;
use crate::here::{Here, fault, now};
use crate::hook::led_here;
use crate::output::{self, clean};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::Root;
use view::request_view::{self, RequestView};
use view::suggested_commands::SuggestedCommands;
use view::text::single_line;

/// What members ask: plans that wait for approval, and questions for permission
///
/// Each is shown whole, with the id that approve and deny take. Without --team those of all teams.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl requests\n  teamctl requests -t survey --json\n  teamctl approve perm-1770977144590-x3k9a0b"
)]
pub(crate) struct Requests {}

pub(crate) fn run(here: &Here, _: &Requests) -> Result<ExitCode, ErrorReport> {
    here.lead_only("see what members ask")?;
    let (root, teams) = (here.root()?, teams(here)?);
    let (mut open, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for team in &teams {
        match waiting(here, &root, team) {
            Ok(waiting) => open.extend(waiting),
            // What the others ask is told all the same.
            Err(fault) if teams.len() > 1 => {
                output::told(here, &fault);
                code = ExitCode::from(ErrorKind::Partial.exit_code());
            }
            Err(fault) => return Err(fault),
        }
    }
    let typed = match teams.as_slice() {
        [only] => typed::of(here, only)?,
        // An id says whose request it is.
        _ => typed::at(here),
    };
    show(here, &open, teams.len() > 1, &typed);
    Ok(code)
}

/// Of which teams: the one that was named or that is led from here, else all of ours.
pub(super) fn teams(here: &Here) -> Result<Vec<TeamName>, ErrorReport> {
    let root = here.root()?;
    let ours: Vec<TeamName> =
        root.teams().map_err(fault)?.into_iter().filter(|team| !team.is_claude_session()).collect();
    if here.global.team.is_some() || ours.len() < 2 || led_here(here)?.is_some() {
        return Ok(vec![here.team_name(&root)?]);
    }
    Ok(ours)
}

/// A request of one of the teams.
struct Of {
    team: TeamName,
    waiting: RequestView,
}

fn waiting(here: &Here, root: &Root, team: &TeamName) -> Result<Vec<Of>, ErrorReport> {
    let caller = here.caller_at(root.team(team).map_err(fault)?)?;
    let (policy, asking) = (caller.policy()?, caller.team().requests().scan().map_err(fault)?);
    let all = request_view::open_requests(&policy, asking).into_iter();
    Ok(all.map(|waiting| Of { team: team.clone(), waiting }).collect())
}

fn show(here: &Here, open: &[Of], several: bool, typed: &SuggestedCommands) {
    if here.global.json {
        let requests: Vec<Value> = open.iter().map(object).collect();
        return output::done(here, &json!({"requests": requests}), "");
    }
    let at = now();
    let told: Vec<String> = open.iter().map(|of| sentence(of, several, at)).collect();
    match told.as_slice() {
        [] => output::done(here, &json!({}), "Nobody waits for an answer."),
        told => {
            output::done(here, &json!({}), &told.join("\n\n"));
            let [yes, no] = [&["approve", "ID"][..], &["deny", "ID", "--reason", "R"]];
            let (yes, no) = (typed.command(yes), typed.command(no));
            output::done(here, &json!({}), &format!("\nAnswer with: {yes}, or: {no}"));
        }
    }
}

fn object(of: &Of) -> Value {
    let Of { team, waiting: RequestView { request, policy_answer: ends } } = of;
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
        object["after"] = json!(if *approved { "approve" } else { "deny" });
    }
    object
}

fn sentence(of: &Of, several: bool, at: u64) -> String {
    let Of { team, waiting } = of;
    let request = &waiting.request;
    let team = if several { format!("@{team}") } else { String::new() };
    let ends = waiting.policy_answer.map_or_else(String::new, |(end, approved)| {
        let word = if approved { "approved" } else { "denied" };
        format!(", {word} in {}", ago(end.saturating_sub(at)))
    });
    let since = match request.asked_at {
        0 => String::new(),
        since => format!("  since {}", ago(at.saturating_sub(since))),
    };
    let head = format!("{}{team}  {}{since}{ends}", single_line(request.from.as_str()), request.request.id());
    let body = request_view::request_text(&request.request);
    let body: Vec<String> = clean(&body).lines().map(|line| format!("    {line}")).collect();
    format!("{}\n{}", clean(&head), body.join("\n"))
}

fn ago(ms: u64) -> String {
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
        assert_eq!([ago(999), ago(61_000), ago(3_660_000)], ["0s", "1m", "1h1m"]);
    }
}
