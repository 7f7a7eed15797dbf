//! `create`: a team with its lead, and nobody else yet.

use super::message_input;
use super::run_file_errors::{FileUse, print_validation_errors};
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{self, Reply, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use protocol::permission_mode::PermissionMode;
use protocol::policy::Policy;
use runner::ValidationError;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a team
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl create survey --description 'counts and builds'\n  teamctl create survey --unique\n  teamctl create survey --policy policy.toml --lead-mode delegate"
)]
pub(crate) struct CreateArgs {
    /// Its name; characters outside a-z, 0-9 and - become dashes [default: a random one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// What the team is for; - reads it from standard input
    #[arg(long, value_name = "D")]
    description: Option<String>,
    /// The lead's agent type
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// The model of members that name none
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Take NAME-2, NAME-3 where the name is taken
    #[arg(long)]
    unique: bool,
    /// The lead's permission mode, which a member goes on in when its plan is approved; with delegate a program that
    /// leads may do nothing but lead
    #[arg(long, value_name = "MODE")]
    lead_mode: Option<PermissionMode>,
    /// Who answers what members ask: a TOML file with a table `policy` (docs/requests.md) [default: a person or the
    /// lead]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

pub(crate) fn run(here: &CommandContext, args: &CreateArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("create a team")?;
    let policy = match requested_policy(args)? {
        Ok(policy) => policy,
        Err((path, flaws)) => return Ok(print_validation_errors(here, FileUse::Policy, &path, &flaws)),
    };
    let wanted = args.name.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let team = sanitized_team_name(&wanted)?;
    let request = control::CreateTeamRequest {
        description: args.description.as_deref().map(message_input::read_text).transpose()?,
        agent_type: args.agent_type.clone(),
        model: args.model.clone(),
        unique: args.unique,
        policy,
        lead_mode: args.lead_mode,
        ..default_create_request(&team)?
    };
    let Reply::CreateTeam(reply) = here.call_daemon(Request::CreateTeam(request))? else {
        return Err(unexpected_reply());
    };
    let sentence = format!("Team {} is there; its lead is {}.", reply.team_name, reply.lead_agent_id);
    output::print_result(here, &reply, &sentence);
    Ok(ExitCode::SUCCESS)
}

/// The inner error: the file, and what is wrong with it.
fn requested_policy(
    args: &CreateArgs,
) -> Result<Result<Policy, (PathBuf, Vec<ValidationError>)>, ErrorReport> {
    match &args.policy {
        None => Ok(Ok(Policy::default())),
        Some(path) => Ok(runner::read_policy_file(path)?.map_err(|flaws| (path.clone(), flaws))),
    }
}

/// The name that a team has which somebody wants to call so; told where it is another.
pub(super) fn sanitized_team_name(wanted: &str) -> Result<TeamName, ErrorReport> {
    let team =
        TeamName::sanitize(wanted).map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    if team.as_str() != wanted {
        output::print_warning(&format!("the team is called {team}, since {wanted} is no name for one"));
    }
    Ok(team)
}

/// A team here, of which nothing but its name is said.
pub(super) fn default_create_request(team: &TeamName) -> Result<control::CreateTeamRequest, ErrorReport> {
    let cwd = std::env::current_dir();
    let cwd = cwd.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot find the current directory: {error}"))
    })?;
    Ok(control::CreateTeamRequest {
        team: team.clone(),
        description: None,
        agent_type: None,
        model: None,
        cwd,
        unique: false,
        policy: Policy::default(),
        lead_mode: None,
    })
}
