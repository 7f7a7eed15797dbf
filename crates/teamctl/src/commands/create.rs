//! `teamctl create`: creates a team without teammates.

use super::policy::check_no_worktree_commands;
use super::print_run_or_policy_file_errors::{FileUse, print_validation_errors};
use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use client::open_team_beside_caller_pane::{CallerPane, DEFAULT_KEPT_PERCENT};
use protocol::control_socket::{CreateTeamReply, CreateTeamRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::permission_mode::PermissionMode;
use protocol::policy::Policy;
use protocol::team_and_member_names::TeamName;
use runner::ValidationError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Create a team
///
/// Example: teamctl create survey --description 'count the lines of each file'
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl create survey --unique\n  teamctl create survey --policy policy.toml --lead-mode delegate\n  teamctl create survey --here\n  teamctl create survey --record"
)]
pub(crate) struct CreateArgs {
    /// Name: at most 64 of a-z, 0-9 and - [default: name of the current directory, with a number if
    /// it is taken]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// Purpose of the team; - reads standard input
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    description: Option<String>,
    /// Agent type of the lead
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// Model of members that are started without a model
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// If the name is taken, use NAME-2, NAME-3 and so on
    #[arg(long)]
    unique: bool,
    /// Permission mode of the lead, and of members whose plan is approved. In mode delegate, an
    /// agent that leads can only coordinate
    #[arg(long, value_name = "MODE")]
    lead_mode: Option<PermissionMode>,
    /// TOML file with the table `policy`: who answers requests, and the budget (docs/requests.md)
    /// [default: the lead or a person answers]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Accept the commands `setup` and `teardown` of the policy
    #[arg(long, requires = "policy")]
    yes: bool,
    /// Record everything that happens in the team, without secrets (docs/manage.md)
    #[arg(long)]
    record: bool,
    /// Open the members' panes beside this pane, while there is space. This pane keeps PERCENT of
    /// its width (30 without PERCENT)
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_KEPT_PERCENT, value_parser = clap::value_parser!(u8).range(10..=90))]
    here: Option<u8>,
}

pub(crate) fn run(context: &CommandContext, args: &CreateArgs) -> Result<ExitCode, ErrorReport> {
    let policy = match requested_policy(args)? {
        Ok(policy) => policy,
        Err(InvalidPolicy { path, errors }) => {
            return Ok(print_validation_errors(context, FileUse::Policy, path, &errors));
        }
    };
    if let (Some(file), false) = (&args.policy, args.yes) {
        check_no_worktree_commands(&policy, file)?;
    }
    let caller_pane = args.here.map(CallerPane::find).transpose()?;
    caller_pane.iter().try_for_each(|pane| pane.check_server(context))?;
    let team = args.name.as_deref().map_or_else(|| Ok(directory_team_name()), new_team_name)?;
    let request = CreateTeamRequest {
        description: args.description.as_deref().map(text_or_stdin::read_text).transpose()?,
        agent_type: args.agent_type.clone(),
        model: args.model.clone(),
        unique: args.unique || args.name.is_none(),
        policy,
        lead_mode: args.lead_mode,
        record: args.record,
        ..default_create_request(&team)?
    };
    let reply: CreateTeamReply = context.request(Request::CreateTeam(request))?;
    caller_pane.iter().try_for_each(|pane| pane.open_team_beside(context, &reply.team_name))?;
    let record = reply.record.as_ref().map(|path| format!("; its record is {}", path.display()));
    let sentence = format!("created team {}{}", reply.team_name, record.unwrap_or_default());
    output::print_result(context, &reply, &sentence);
    Ok(ExitCode::SUCCESS)
}

/// A policy file with errors.
struct InvalidPolicy<'a> {
    path: &'a Path,
    errors: Vec<ValidationError>,
}

/// The policy in the file of `--policy`, or the default policy without this option.
fn requested_policy(args: &CreateArgs) -> Result<Result<Policy, InvalidPolicy<'_>>, ErrorReport> {
    match &args.policy {
        None => Ok(Ok(Policy::default())),
        Some(path) => Ok(runner::read_policy_file(path)?.map_err(|errors| InvalidPolicy { path, errors })),
    }
}

/// Checks the name of a new team.
///
/// # Errors
///
/// `Usage`. The help of the error suggests a similar valid name, if there is one.
pub(super) fn new_team_name(name: &str) -> Result<TeamName, ErrorReport> {
    TeamName::parse(name).map_err(|error| {
        let error = ErrorReport::new(ErrorKind::Usage, error.to_string());
        match TeamName::sanitize(name) {
            Ok(valid_name) => {
                error.with_help(format!("a name that fits: {}", valid_name.as_str().trim_matches('-')))
            }
            Err(_) => error,
        }
    })
}

/// A team name made of the name of the current directory.
fn directory_team_name() -> TeamName {
    let directory = std::env::current_dir().unwrap_or_default();
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    team_name_for_directory(&name.unwrap_or_default())
}

/// Converts the name of a directory into a team name. Returns `team` if that is impossible, or if
/// the result is a name such as `session-1`. teamd does not show teams with such a name, because
/// they belong to Claude Code.
fn team_name_for_directory(directory: &str) -> TeamName {
    let name = TeamName::sanitize(directory).map(|name| name.as_str().trim_matches('-').to_owned());
    let name = name.ok().and_then(|name| TeamName::parse(&name).ok());
    let fallback = || TeamName::parse("team").expect("`team` is a valid name");
    name.filter(|name| !name.is_claude_session()).unwrap_or_else(fallback)
}

/// A request for a team in the current directory, with defaults for everything else.
pub(super) fn default_create_request(team: &TeamName) -> Result<CreateTeamRequest, ErrorReport> {
    let cwd = std::env::current_dir();
    let cwd = cwd.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot find the current directory: {error}"))
    })?;
    Ok(CreateTeamRequest::new(team.clone(), cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn team_is_named_after_the_directory() {
        let name = |directory: &str| team_name_for_directory(directory).to_string();
        assert_eq!((name("survey"), name("My Project!")), ("survey".to_owned(), "my-project".to_owned()));
        assert_eq!(
            (name(""), name("日本"), name("session-1")),
            ("team".into(), "team".into(), "team".into())
        );
    }

    #[test]
    fn refused_name_comes_with_one_that_fits() {
        assert!(new_team_name("survey-2").is_ok());
        let error = new_team_name("My Team!").unwrap_err();
        assert_eq!(
            (error.kind, error.help.as_deref()),
            (ErrorKind::Usage, Some("a name that fits: my-team"))
        );
        assert_eq!(new_team_name("!!!").unwrap_err().help, None);
    }
}
