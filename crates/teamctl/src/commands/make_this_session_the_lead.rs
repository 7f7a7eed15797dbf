//! `teamctl lead`: makes the session in this terminal the lead of a team.
//!
//! The daemon recognizes the session by the first process of its terminal. While the session leads,
//! its program gets the lead's messages by hooks, and `teamctl` in this terminal works on the team.

use super::create::{default_create_request, new_team_name};
use crate::command_context::CommandContext;
use crate::output;
use client::find_lead_session_of_caller::find_lead_session;
use client::find_terminal_and_ancestors_of_caller::controlling_terminal;
use client::open_team_beside_caller_pane::{CallerPane, DEFAULT_KEPT_PERCENT};
use protocol::control_socket::{CreateTeamReply, LeadProcess, Request, SetLeadRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use store::env_var;

/// Make this pane's session the lead of a team
///
/// Example: teamctl lead survey
///
/// The command creates the team if it does not exist. From then on, `teamctl` in this pane works on
/// that team. The session leads until --release, or until the first process of this terminal exits.
/// A team has one lead, and a session leads one team.
///
/// If the hooks of an agent program in this pane run `teamd-shim hook`, the program gets the lead's
/// messages. It gets them when its turn ends, and while it is idle.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl lead survey --here=40\n  teamctl lead --release")]
pub(crate) struct LeadArgs {
    /// The team [default: the team of this pane, else the only one]
    #[arg(value_name = "TEAM", conflicts_with = "release")]
    name: Option<String>,
    /// Stop leading; the team stays
    #[arg(long)]
    release: bool,
    /// Open the members' panes beside this pane, while there is space. This pane keeps PERCENT of
    /// its width (30 without PERCENT)
    #[arg(long, conflicts_with = "release", value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_KEPT_PERCENT, value_parser = clap::value_parser!(u8).range(10..=90))]
    here: Option<u8>,
}

pub(crate) fn run(context: &CommandContext, args: &LeadArgs) -> Result<ExitCode, ErrorReport> {
    if args.release {
        return release_lead(context);
    }
    let caller_pane = args.here.map(CallerPane::find).transpose()?;
    caller_pane.iter().try_for_each(|pane| pane.check_server(context))?;
    let LedTeam { name, is_new } = find_or_create_team(context, args.name.as_deref())?;
    context.call_daemon(Request::SetLead(SetLeadRequest::Take(session_identity(&name)?)))?;
    caller_pane.iter().try_for_each(|pane| pane.open_team_beside(context, &name))?;
    let note = if is_new { ", which is new" } else { "" };
    let sentence = format!("This session leads {name}{note}.");
    output::print_result(context, &json!({"team_name": name, "created": is_new}), &sentence);
    Ok(ExitCode::SUCCESS)
}

fn release_lead(context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let team = match find_lead_session(&context.directories()?) {
        Some(lead) => lead.team,
        // A person in another terminal names the team with `-t`.
        None if context.args.team.is_some() => context.team_name(&context.root()?)?,
        None => {
            let error = ErrorReport::new(ErrorKind::NotFound, "cannot leave: this session leads no team");
            return Err(error.with_help("name the team with -t TEAM"));
        }
    };
    context.call_daemon(Request::SetLead(SetLeadRequest::Release(team.clone())))?;
    output::print_result(context, &json!({"team_name": team}), &format!("No session leads {team} any more."));
    Ok(ExitCode::SUCCESS)
}

/// The team that the session is to lead.
struct LedTeam {
    name: TeamName,
    /// This command created it.
    is_new: bool,
}

fn find_or_create_team(context: &CommandContext, name: Option<&str>) -> Result<LedTeam, ErrorReport> {
    let Some(name) = name.or(context.args.team.as_deref()) else {
        return Ok(LedTeam { name: context.team_name(&context.root()?)?, is_new: false });
    };
    let teams = context.existing_root()?.map_or(Ok(Vec::new()), |root| root.teams())?;
    if let Some(name) = TeamName::sanitize(name).ok().filter(|name| teams.contains(name)) {
        return Ok(LedTeam { name, is_new: false });
    }
    let name = new_team_name(name)?;
    let reply: CreateTeamReply = context.request(Request::CreateTeam(default_create_request(&name)?))?;
    Ok(LedTeam { name: reply.team_name, is_new: true })
}

/// The first process of this terminal, with its pane.
fn session_identity(team: &TeamName) -> Result<LeadProcess, ErrorReport> {
    let process = controlling_terminal().first_process().ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::MissingPath,
            "cannot tell which session this is: there is nothing above this process",
        )
        .with_help("let the session itself run: teamctl lead TEAM")
    })?;
    let tmux_socket = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let pane = env_var("TMUX_PANE").filter(|_| tmux_socket.is_some());
    Ok(LeadProcess {
        team: team.clone(),
        pid: process.pid,
        start_time: process.start,
        pane,
        tmux_socket,
        session_id: None,
    })
}
