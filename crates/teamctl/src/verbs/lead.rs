//! `lead`: the session in this pane leads a team. It is known by the first process of its terminal; its program's
//! hooks wait for the lead's mail from then on, and `teamctl` here means that team.

use crate::here::{Here, misunderstood, variable};
use crate::hook::{led_here, terminal};
use crate::output;
use protocol::control::{self, Reply, Request, SetLeadRequest};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make the session in this pane the lead of a team
///
/// Makes the team if it is not there. From then on `teamctl` in this pane takes that team as its own, and an agent
/// program here whose hooks run `teamctl hook` gets the lead's mail when its turn ends, and while it is idle. It leads
/// until --release, or until the first process of this terminal ends. A team has one lead, and a session one team.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl lead survey\n  teamctl lead --release")]
pub(crate) struct Lead {
    /// The team [default: the one of this pane, else the only one there is]
    #[arg(value_name = "TEAM", conflicts_with = "release")]
    name: Option<String>,
    /// Lead no longer; the team stays
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(here: &Here, args: &Lead) -> Result<ExitCode, ErrorReport> {
    here.lead_only("lead a team")?;
    if args.release {
        return release(here);
    }
    let (team, is_new) = team(here, args.name.as_deref())?;
    here.ask(Request::SetLead(SetLeadRequest::Take(this_session(&team)?)))?;
    let made = if is_new { ", which is new" } else { "" };
    let sentence = format!("This session leads {team}{made}.");
    output::done(here, &json!({"team_name": team, "created": is_new}), &sentence);
    Ok(ExitCode::SUCCESS)
}

fn release(here: &Here) -> Result<ExitCode, ErrorReport> {
    let team = match led_here(here)? {
        Some(lead) => lead.team,
        // A person may end it from elsewhere, by the team's name.
        None if here.global.team.is_some() => here.team_name(&here.root()?)?,
        None => {
            let fault = ErrorReport::new(ErrorKind::NotFound, "cannot leave: this session leads no team");
            return Err(fault.with_help("name the team with -t TEAM"));
        }
    };
    here.ask(Request::SetLead(SetLeadRequest::Release(team.clone())))?;
    output::done(here, &json!({"team_name": team}), &format!("No session leads {team} any more."));
    Ok(ExitCode::SUCCESS)
}

/// The team, and whether it was made for this.
fn team(here: &Here, name: Option<&str>) -> Result<(TeamName, bool), ErrorReport> {
    let root = here.root()?;
    let Some(name) = name.or(here.global.team.as_deref()) else { return Ok((here.team_name(&root)?, false)) };
    let team = super::create::called(name)?;
    if root.teams().map_err(crate::here::fault)?.contains(&team) {
        return Ok((team, false));
    }
    match here.ask(Request::CreateTeam(super::create::plain(&team)?))? {
        Reply::CreateTeam(reply) => Ok((reply.team_name, true)),
        _ => Err(misunderstood()),
    }
}

fn this_session(team: &TeamName) -> Result<control::LeadProcess, ErrorReport> {
    let first = terminal().first().ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::MissingPath,
            "cannot tell which session this is: there is nothing above this process",
        )
        .with_help("let the session itself run: teamctl lead TEAM")
    })?;
    let tmux = variable("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let pane = variable("TMUX_PANE").filter(|_| tmux.is_some());
    Ok(control::LeadProcess {
        team: team.clone(),
        pid: first.pid,
        start_time: first.start,
        pane,
        tmux_socket: tmux,
        session_id: None,
    })
}
