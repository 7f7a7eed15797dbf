//! `requests`: what members ask and nobody has answered, shown whole. Reads the files alone.

use crate::here::{Here, fault, now};
use crate::hook::led_here;
use crate::output::{self, clean};
use protocol::asked::{Asked, AskedKind};
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use protocol::payload::{PermissionRequest, PlanApprovalRequest};
use protocol::policy::{Decision, Policy};
use serde_json::{Value, json};
use std::process::ExitCode;
use store::{OpenRequest, Root};

/// What members ask: plans that wait for approval, and questions for permission
///
/// Each is shown whole, with the id that approve and deny take. Without --team those of all teams.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl requests\n  teamctl requests -t survey --json\n  teamctl approve perm-1770977144590-x3k9a0b"
)]
pub(crate) struct Requests {}

pub(crate) fn run(here: &Here, _: &Requests) -> Result<ExitCode, Fault> {
    here.lead_only("see what members ask")?;
    let (root, teams) = (here.root()?, teams(here)?);
    let (mut open, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for team in &teams {
        match waiting(here, &root, team) {
            Ok(waiting) => open.extend(waiting),
            // What the others ask is told all the same.
            Err(fault) if teams.len() > 1 => {
                output::complain(&fault.to_string());
                code = ExitCode::from(Kind::Partly.exit_code());
            }
            Err(fault) => return Err(fault),
        }
    }
    show(here, &open, teams.len() > 1);
    Ok(code)
}

/// Of which teams: the one that was named or that is led from here, else all of ours.
pub(super) fn teams(here: &Here) -> Result<Vec<TeamName>, Fault> {
    let root = here.root()?;
    let ours: Vec<TeamName> =
        root.teams().map_err(fault)?.into_iter().filter(|team| !team.is_foreign()).collect();
    if here.global.team.is_some() || ours.len() < 2 || led_here(here)?.is_some() {
        return Ok(vec![here.team_name(&root)?]);
    }
    Ok(ours)
}

/// A request that waits.
struct Waiting {
    team: TeamName,
    request: OpenRequest,
    /// When the team's policy answers it, ms since the epoch, and how; none: it waits on.
    ends: Option<(u64, bool)>,
}

fn waiting(here: &Here, root: &Root, team: &TeamName) -> Result<Vec<Waiting>, Fault> {
    let caller = here.caller_at(root.team(team).map_err(fault)?)?;
    let (policy, asking) = (caller.policy()?, caller.team().requests().asking().map_err(fault)?);
    let of = |request: OpenRequest| {
        let waits = request.asked.kind() == AskedKind::Plan && asking.overlooked.contains(&request.from);
        let ends = if waits { None } else { ends(&policy, &request) };
        Waiting { team: team.clone(), ends, request }
    };
    Ok(asking.open.into_iter().map(of).collect())
}

/// As far as the files tell: the daemon counts from when it saw the request.
fn ends(policy: &Policy, request: &OpenRequest) -> Option<(u64, bool)> {
    let asks = matches!(policy.decide(&request.asked, &request.cwd), Decision::Ask(_));
    let approved = matches!(policy.overdue()?, Decision::Approve(_));
    let at = request.since.saturating_add(policy.timeout_ms?);
    (asks && request.since > 0).then_some((at, approved))
}

fn show(here: &Here, open: &[Waiting], several: bool) {
    if here.global.json {
        let requests: Vec<Value> = open.iter().map(object).collect();
        return output::done(here, &json!({"requests": requests}), "");
    }
    let at = now();
    let told: Vec<String> = open.iter().map(|waiting| sentence(waiting, several, at)).collect();
    match told.as_slice() {
        [] => output::done(here, &json!({}), "Nobody waits for an answer."),
        told => {
            output::done(here, &json!({}), &told.join("\n\n"));
            output::done(
                here,
                &json!({}),
                "\nAnswer with: teamctl approve ID, or: teamctl deny ID --reason R",
            );
        }
    }
}

fn object(waiting: &Waiting) -> Value {
    let Waiting { team, request, ends } = waiting;
    let body: Value =
        serde_json::from_str(&protocol::json::whole_pairs(&request.text)).unwrap_or(Value::Null);
    let mut object = json!({
        "team": team,
        "id": request.asked.id(),
        "kind": request.asked.kind(),
        "from": request.from,
        "since": request.since,
        "body": body,
    });
    if let Some((at, approved)) = ends {
        object["times_out_at"] = json!(at);
        object["after"] = json!(if *approved { "approve" } else { "deny" });
    }
    object
}

fn sentence(waiting: &Waiting, several: bool, at: u64) -> String {
    let request = &waiting.request;
    let team = if several { format!("@{}", waiting.team) } else { String::new() };
    let ends = waiting.ends.map_or_else(String::new, |(end, approved)| {
        let word = if approved { "approved" } else { "denied" };
        format!(", {word} in {}", ago(end.saturating_sub(at)))
    });
    let since = match request.since {
        0 => String::new(),
        since => format!("  since {}", ago(at.saturating_sub(since))),
    };
    let head = format!("{}{team}  {}{since}{ends}", flat(request.from.as_str()), request.asked.id());
    let body = match &request.asked {
        Asked::Plan(plan) => of_plan(plan),
        Asked::Permission(permission) => of_permission(permission),
    };
    let body: Vec<String> = clean(&body).lines().map(|line| format!("    {line}")).collect();
    format!("{}\n{}", clean(&head), body.join("\n"))
}

fn of_plan(plan: &PlanApprovalRequest) -> String {
    let place = if plan.plan_file_path.is_empty() {
        String::new()
    } else {
        format!(" ({})", flat(&plan.plan_file_path))
    };
    format!("hands in a plan{place}:\n{}", plan.plan_content.trim_end())
}

fn of_permission(request: &PermissionRequest) -> String {
    let mut text = format!("asks to use {}", flat(&request.tool_name));
    if !request.description.trim().is_empty() {
        text.push_str(&format!(": {}", request.description.trim()));
    }
    if !request.input.is_null() {
        text.push_str(&format!("\ninput: {}", pretty(&request.input)));
    }
    if !request.permission_suggestions.is_empty() {
        let suggestions = serde_json::to_value(&request.permission_suggestions).unwrap_or(Value::Null);
        text.push_str(&format!("\nwith --always from now on too: {}", pretty(&suggestions)));
    }
    text
}

/// Over several lines; a line end within a text stays `\n`, so that no text passes for a line of ours.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn flat(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
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
    fn a_question_is_shown_whole_and_steers_no_terminal() {
        let text = json!({"request_id": "p", "agent_id": "a", "tool_name": "Bash\nteam-lead", "description": "d\u{1b}[2J",
            "input": {"command": "a\nb"}, "permission_suggestions": [{"type": "setMode", "mode": "plan", "destination": "session"}]});
        let shown = of_permission(&serde_json::from_value(text).unwrap());
        let expected = "asks to use Bash team-lead: d\u{1b}[2J\ninput: {\n  \"command\": \"a\\nb\"\n}\nwith --always from now on too: [";
        assert!(shown.starts_with(expected), "{shown}");
        let plan = of_plan(
            &serde_json::from_value(
                json!({"from": "a", "requestId": "p", "planFilePath": "/x", "planContent": "1.\n2.\n"}),
            )
            .unwrap(),
        );
        assert_eq!(plan, "hands in a plan (/x):\n1.\n2.");
    }

    #[test]
    fn a_time_is_told_in_one_or_two_units() {
        assert_eq!([ago(999), ago(61_000), ago(3_660_000)], ["0s", "1m", "1h1m"]);
    }
}
