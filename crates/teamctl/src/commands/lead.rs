//! `lead`: the session in this pane leads a team. It is known by the first process of its terminal; its program's
//! hooks wait for the lead's mail from then on, and `teamctl` here means that team.

use crate::context::CommandContext;
use crate::output;
use client::controlling_terminal::controlling_terminal;
use client::error::unexpected_reply;
use client::lead_session::led_by_this_session;
use protocol::control::{self, Reply, Request, SetLeadRequest};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use store::env_var;

/// Make the session in this pane the lead of a team
///
/// Makes the team if it is not there. From then on `teamctl` in this pane takes that team as its own, and an agent
/// program here whose hooks run `teamd-shim hook` gets the lead's mail when its turn ends, and while it is idle. It leads
/// until --release, or until the first process of this terminal ends. A team has one lead, and a session one team.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl lead survey\n  teamctl lead --release")]
pub(crate) struct LeadArgs {
    /// The team [default: the one of this pane, else the only one there is]
    #[arg(value_name = "TEAM", conflicts_with = "release")]
    name: Option<String>,
    /// Lead no longer; the team stays
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(here: &CommandContext, args: &LeadArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("lead a team")?;
    if args.release {
        return release_lead(here);
    }
    let (team, is_new) = find_or_create_team(here, args.name.as_deref())?;
    here.call_daemon(Request::SetLead(SetLeadRequest::Take(session_identity(&team)?)))?;
    let made = if is_new { ", which is new" } else { "" };
    let sentence = format!("This session leads {team}{made}.");
    output::print_result(here, &json!({"team_name": team, "created": is_new}), &sentence);
    Ok(ExitCode::SUCCESS)
}

fn release_lead(here: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let team = match led_by_this_session(&here.directories()?) {
        Some(lead) => lead.team,
        // A person may end it from elsewhere, by the team's name.
        None if here.args.team.is_some() => here.team_name(&here.root()?)?,
        None => {
            let fault = ErrorReport::new(ErrorKind::NotFound, "cannot leave: this session leads no team");
            return Err(fault.with_help("name the team with -t TEAM"));
        }
    };
    here.call_daemon(Request::SetLead(SetLeadRequest::Release(team.clone())))?;
    output::print_result(here, &json!({"team_name": team}), &format!("No session leads {team} any more."));
    Ok(ExitCode::SUCCESS)
}

/// The team, and whether it was made for this.
fn find_or_create_team(here: &CommandContext, name: Option<&str>) -> Result<(TeamName, bool), ErrorReport> {
    let root = here.root()?;
    let Some(name) = name.or(here.args.team.as_deref()) else { return Ok((here.team_name(&root)?, false)) };
    let team = super::create::sanitized_team_name(name)?;
    if root.teams().map_err(crate::ErrorReport::from)?.contains(&team) {
        return Ok((team, false));
    }
    match here.call_daemon(Request::CreateTeam(super::create::default_create_request(&team)?))? {
        Reply::CreateTeam(reply) => Ok((reply.team_name, true)),
        _ => Err(unexpected_reply()),
    }
}

fn session_identity(team: &TeamName) -> Result<control::LeadProcess, ErrorReport> {
    let first = controlling_terminal().first_process().ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::MissingPath,
            "cannot tell which session this is: there is nothing above this process",
        )
        .with_help("let the session itself run: teamctl lead TEAM")
    })?;
    let tmux = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let pane = env_var("TMUX_PANE").filter(|_| tmux.is_some());
    Ok(control::LeadProcess {
        team: team.clone(),
        pid: first.pid,
        start_time: first.start,
        pane,
        tmux_socket: tmux,
        session_id: None,
    })
}
