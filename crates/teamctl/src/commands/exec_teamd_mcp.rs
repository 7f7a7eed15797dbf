//! `teamctl mcp`: determines which member the MCP server acts for, and executes the server
//! `teamd-mcp`.
//!
//! The server is a separate program because its libraries would slow down the start of every
//! `teamctl` command.

mod parent_agent;

use crate::command_context::CommandContext;
use client::find_lead_session_of_caller::find_lead_session;
use client::root_socket_team_and_caller::member_name;
use parent_agent::{AgentEnvironment, ExpectedRoot, ParentAgent, parent_agent};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use store::{env_var, own_program};

/// The file name of the server.
const SERVER_PROGRAM: &str = "teamd-mcp";

/// Serve the team's tools to an agent over MCP
///
/// Example: claude mcp add team -- teamctl mcp
///
/// The server uses standard input and output. docs/mcp.md describes its tools: SendMessage,
/// TeamCreate, TeamDelete, SpawnTeammate, Ask, TaskCreate, TaskGet, TaskList, TaskUpdate,
/// ReadInbox, MarkRead, Wait, Requests, Approve, Deny.
///
/// All calls are made for one member. The option --member names this member; without it, the
/// environment of this process or of a parent process does. Exit code 67: there is no such member.
///
/// A lead without --team works on the team that the session in this terminal leads (`teamctl
/// lead`). If there is none, the lead works on the team that it creates.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  codex mcp add team -- teamctl mcp\n  teamctl mcp --member ann@survey")]
pub(crate) struct McpArgs {
    /// Member for which the calls are made; must equal $TEAMD_MEMBER if that is set [default:
    /// $TEAMD_MEMBER, else the lead]
    #[arg(long, value_name = "NAME@TEAM")]
    member: Option<String>,
}

/// Executes the server. Returns only if that fails.
pub(crate) fn run(context: &CommandContext, args: &McpArgs) -> Result<ExitCode, ErrorReport> {
    if env_var("TEAMD_MEMBER").is_none() {
        identify_by_parent(context, args)?;
    }
    let own_name = env_var("TEAMD_MEMBER");
    let own_team = own_name.as_ref().and_then(|_| env_var("TEAMD_TEAM"));
    let team = context.args.team.as_deref();
    reject_other_team(own_team.as_deref(), team)?;
    let mut identity = resolve_identity(args.member.as_deref(), own_name.as_deref(), team)?;
    if own_name.is_none() {
        identity = checked_identity(context, identity)?;
    }
    let program = server_path()?;
    let mut command = Command::new(&program);
    command.arg("--root").arg(context.root_path()?).arg("--state-dir").arg(context.directories()?.state_dir);
    command.arg("--socket").arg(context.daemon_socket()?).args(["--member", identity.name.as_str()]);
    command.args(identity.team.iter().flat_map(|team| ["--team", team.as_str()]));
    let error = command.exec();
    let message = format!("cannot start {}: {error}", program.display());
    Err(ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install"))
}

/// Looks for an agent among the parent processes, because the environment of this process names no
/// member. If there is an agent, this function executes `teamctl` again with the agent's
/// environment variables, which name the member.
fn identify_by_parent(context: &CommandContext, args: &McpArgs) -> Result<(), ErrorReport> {
    let socket = context.daemon_socket().unwrap_or_default();
    let expected_root = context.args.root.as_deref().map(|root| ExpectedRoot { root, socket: &socket });
    match parent_agent(expected_root) {
        ParentAgent::Known(variables) => exec_self_as_agent(&variables),
        ParentAgent::Unidentified if args.member.is_none() => Err(unidentified_agent()),
        ParentAgent::Unidentified | ParentAgent::NotFound => Ok(()),
    }
}

/// Executes `teamctl` again with the agent's environment variables. They name the member and
/// determine teamd's directories.
fn exec_self_as_agent(variables: &AgentEnvironment) -> Result<(), ErrorReport> {
    let own_path = own_program()?;
    let error = Command::new(&own_path).args(std::env::args_os().skip(1)).envs(variables).exec();
    Err(ErrorReport::new(
        ErrorKind::MissingPath,
        format!("cannot start {} again: {error}", own_path.display()),
    ))
}

fn unidentified_agent() -> ErrorReport {
    let message =
        "cannot find the member: this runs under an agent of a team, and no variable here names the agent";
    ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("pass the variables that begin with TEAMD_ to it, or say --member NAME@TEAM")
}

/// Returns an error if the caller is an agent and `team` is not its own team.
fn reject_other_team(own_team: Option<&str>, team: Option<&str>) -> Result<(), ErrorReport> {
    match (own_team, team) {
        (Some(own_team), Some(team)) if own_team != team => {
            let message =
                format!("cannot speak for an agent of {team}: this is the environment of one of {own_team}");
            Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --team out"))
        }
        _ => Ok(()),
    }
}

/// The member that makes the server's calls.
#[derive(Debug, PartialEq, Eq)]
struct McpIdentity {
    name: MemberName,
    /// `None` for a lead without a team. The lead may create one.
    team: Option<TeamName>,
}

/// Determines the member that the MCP server acts for. `requested_name` is the value of `--member`,
/// `NAME` or `NAME@TEAM`. `own_name` is the member's name in the environment of this process.
/// `team` comes from `--team` or the environment. Fails if two of these contradict each other.
fn resolve_identity(
    requested_name: Option<&str>,
    own_name: Option<&str>,
    team: Option<&str>,
) -> Result<McpIdentity, ErrorReport> {
    let (requested_name, requested_team) =
        match requested_name.map(|name| name.split_once('@').unwrap_or((name, ""))) {
            Some((name, team)) => {
                (Some(MemberName::new_unchecked(name)), Some(team).filter(|team| !team.is_empty()))
            }
            None => (None, None),
        };
    let own_name = own_name.map(MemberName::new_unchecked);
    if let (Some(requested_name), Some(own_name)) = (&requested_name, &own_name)
        && requested_name != own_name
    {
        let message = format!("cannot speak for {requested_name}: this is the environment of {own_name}");
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --member out"));
    }
    if let (Some(requested_name), Some(team)) = (requested_team, team)
        && requested_name != team
    {
        let message = format!("cannot speak for an agent of {requested_name}: the team here is {team}");
        return Err(
            ErrorReport::new(ErrorKind::NotPermitted, message).with_help("name one team, in one place")
        );
    }
    let name = own_name.or(requested_name).unwrap_or_else(MemberName::lead);
    let team = requested_team.or(team).map(TeamName::parse).transpose();
    let team = team.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    if team.is_none() && !name.is_lead() {
        let message = format!("cannot speak for {name}: its team is not said");
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help(format!("write it as --member {name}@TEAM")));
    }
    Ok(McpIdentity { name, team })
}

/// Checks the server's member if the environment of this process names no member. A teammate must
/// be a member of its team, because messages to a misspelled name would not arrive. A lead without
/// a team gets the team that the session in this terminal leads.
fn checked_identity(context: &CommandContext, identity: McpIdentity) -> Result<McpIdentity, ErrorReport> {
    match &identity.team {
        Some(team) if !identity.name.is_lead() => {
            let team = context.root()?.team(team)?;
            Ok(McpIdentity { name: member_name(&team, identity.name.as_str())?, ..identity })
        }
        Some(_) => Ok(identity),
        None => Ok(McpIdentity {
            team: find_lead_session(&context.directories()?).map(|lead| lead.team),
            ..identity
        }),
    }
}

/// Returns the path of the MCP server that is in the same directory as this `teamctl`. The PATH is
/// not searched, because both programs must be of the same release.
fn server_path() -> Result<PathBuf, ErrorReport> {
    Ok(installed_program(&own_program()?, SERVER_PROGRAM, Path::is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity_for(
        requested: Option<&str>,
        own_name: Option<&str>,
        team: Option<&str>,
    ) -> Result<(String, String), ErrorKind> {
        let to_texts = |identity: McpIdentity| {
            (identity.name.to_string(), identity.team.map_or_else(String::new, String::from))
        };
        resolve_identity(requested, own_name, team).map(to_texts).map_err(|error| error.kind)
    }

    #[test]
    fn teammate_cannot_act_as_another_member() {
        let ann = Ok(("ann".to_owned(), "survey".to_owned()));
        assert_eq!(identity_for(None, Some("ann"), Some("survey")), ann);
        assert_eq!(identity_for(Some("ann@survey"), Some("ann"), Some("survey")), ann);
        assert_eq!(identity_for(Some("ann"), Some("ann"), Some("survey")), ann);
        for other in ["bob", "bob@survey", "team-lead", "team-lead@survey"] {
            assert_eq!(
                identity_for(Some(other), Some("ann"), Some("survey")),
                Err(ErrorKind::NotPermitted),
                "{other}"
            );
        }
        assert_eq!(
            identity_for(Some("ann@other"), Some("ann"), Some("survey")),
            Err(ErrorKind::NotPermitted)
        );
    }

    #[test]
    fn argument_names_the_member_outside_an_agent() {
        assert_eq!(identity_for(Some("ann@survey"), None, None), Ok(("ann".to_owned(), "survey".to_owned())));
        assert_eq!(identity_for(None, None, None), Ok(("team-lead".to_owned(), String::new())));
        assert_eq!(
            identity_for(None, None, Some("survey")),
            Ok(("team-lead".to_owned(), "survey".to_owned()))
        );
        assert_eq!(identity_for(Some("ann"), None, None), Err(ErrorKind::Usage));
        assert_eq!(identity_for(None, None, Some("No Team")), Err(ErrorKind::Usage));
    }
}
