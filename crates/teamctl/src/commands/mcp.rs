//! `mcp`: the MCP server, which is a program of its own beside ours: its libraries would cost every other verb its
//! quick start. Who it speaks for is settled here, once, and handed over in its arguments.

mod parent_agent;

use crate::context::CommandContext;
use client::lead_session::led_by_this_session;
use client::team_context::member_name;
use parent_agent::{AgentEnvironment, ExpectedRoot, ParentAgent, parent_agent};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::installed_program::installed_program;
use protocol::name::{AgentName, TeamName};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use store::{env_var, own_program};

/// The server's program.
const SERVER_PROGRAM: &str = "teamd-mcp";

/// Serve the team's tools on standard input and output, for agents (MCP)
///
/// SendMessage, TeamCreate, TeamDelete, SpawnTeammate, TaskCreate, TaskGet, TaskList, TaskUpdate, ReadInbox, MarkRead,
/// Wait, Requests, Approve, Deny. Who it speaks for is said by --member or by the environment that every agent has,
/// this process's or that of the process it runs under, once and for all: no call can be somebody else's. Where
/// no --team is said, a lead's is the one that the session in this terminal leads (teamctl lead), else the one that it
/// makes: never one for being the only one there. Exit code 67: there is no such member. See docs/mcp.md.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl mcp\n  teamctl mcp --member ann@survey\n  claude mcp add team -- teamctl mcp\n  codex mcp add team -- teamctl mcp"
)]
pub(crate) struct McpArgs {
    /// Whom it speaks for; where $TEAMD_MEMBER is set it must be that one [default: $TEAMD_MEMBER, else the lead]
    #[arg(long, value_name = "NAME@TEAM")]
    member: Option<String>,
}

/// Becomes the server; returns only where it can't.
pub(crate) fn run(here: &CommandContext, args: &McpArgs) -> Result<ExitCode, ErrorReport> {
    if env_var("TEAMD_MEMBER").is_none() {
        identify_by_parent(here, args)?;
    }
    let home = env_var("TEAMD_MEMBER").and_then(|_| env_var("TEAMD_TEAM"));
    let team = here.args.team.as_deref();
    reject_other_team(home.as_deref(), team)?;
    let speaker = resolve_identity(args.member.as_deref(), env_var("TEAMD_MEMBER").as_deref(), team)?;
    let speaker = if env_var("TEAMD_MEMBER").is_none() { checked_identity(here, speaker)? } else { speaker };
    let program = server_path()?;
    let mut command = Command::new(&program);
    command.arg("--root").arg(here.root_path()?).arg("--state-dir").arg(here.directories()?.state_dir);
    command.arg("--socket").arg(here.socket()?).args(["--member", speaker.name.as_str()]);
    command.args(speaker.team.iter().flat_map(|team| ["--team", team.as_str()]));
    let error = command.exec();
    let message = format!("cannot start {}: {error}", program.display());
    Err(ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install"))
}

/// Where this environment names nobody, that of a process above may.
fn identify_by_parent(here: &CommandContext, args: &McpArgs) -> Result<(), ErrorReport> {
    let socket = here.socket().unwrap_or_default();
    let named = here.args.root.as_deref().map(|root| ExpectedRoot { root, socket: &socket });
    match parent_agent(named) {
        ParentAgent::Known(variables) => exec_self_as_agent(&variables),
        ParentAgent::Unidentified if args.member.is_none() => Err(unidentified_agent()),
        ParentAgent::Unidentified | ParentAgent::NotFound => Ok(()),
    }
}

/// The same once more, with what the agent's own process knows of itself: where the files are hangs on that too.
fn exec_self_as_agent(variables: &AgentEnvironment) -> Result<(), ErrorReport> {
    let own = own_program()?;
    let error = Command::new(&own).args(std::env::args_os().skip(1)).envs(variables).exec();
    Err(ErrorReport::new(ErrorKind::MissingPath, format!("cannot start {} again: {error}", own.display())))
}

fn unidentified_agent() -> ErrorReport {
    let message =
        "cannot tell for whom to speak: this runs under an agent of a team, and nothing here says which one";
    ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("hand the variables that begin with TEAMD_ through to it, or say --member NAME@TEAM")
}

/// An agent is on one team, whatever the arguments say.
fn reject_other_team(home: Option<&str>, team: Option<&str>) -> Result<(), ErrorReport> {
    match (home, team) {
        (Some(home), Some(team)) if home != team => {
            let message =
                format!("cannot speak for an agent of {team}: this is the environment of one of {home}");
            Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --team out"))
        }
        _ => Ok(()),
    }
}

/// For whom the server speaks.
#[derive(Debug, PartialEq, Eq)]
struct McpIdentity {
    name: AgentName,
    /// None: a lead that may make one.
    team: Option<TeamName>,
}

/// Of what the arguments say, the environment's agent, and the team of both.
fn resolve_identity(
    asked: Option<&str>,
    agent: Option<&str>,
    team: Option<&str>,
) -> Result<McpIdentity, ErrorReport> {
    let (asked, of) = match asked.map(|asked| asked.split_once('@').unwrap_or((asked, ""))) {
        Some((name, team)) => {
            (Some(AgentName::new_unchecked(name)), Some(team).filter(|team| !team.is_empty()))
        }
        None => (None, None),
    };
    let me = agent.map(AgentName::new_unchecked);
    if let (Some(asked), Some(me)) = (&asked, &me)
        && asked != me
    {
        let message = format!("cannot speak for {asked}: this is the environment of {me}");
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --member out"));
    }
    if let (Some(of), Some(team)) = (of, team)
        && of != team
    {
        let message = format!("cannot speak for an agent of {of}: the team here is {team}");
        return Err(
            ErrorReport::new(ErrorKind::NotPermitted, message).with_help("name one team, in one place")
        );
    }
    let name = me.or(asked).unwrap_or_else(AgentName::lead);
    let team = of.or(team).map(TeamName::parse).transpose();
    let team = team.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    if team.is_none() && !name.is_lead() {
        let message = format!("cannot speak for {name}: its team is not said");
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help(format!("write it as --member {name}@TEAM")));
    }
    Ok(McpIdentity { name, team })
}

/// Whom no environment names must be a member: a name with a mistake in it would be served, and get no mail. Who is
/// spawned is one before its program starts. A lead of no named team has that of its terminal's session.
fn checked_identity(here: &CommandContext, speaker: McpIdentity) -> Result<McpIdentity, ErrorReport> {
    match &speaker.team {
        Some(team) if !speaker.name.is_lead() => {
            let team = here.root()?.team(team)?;
            Ok(McpIdentity { name: member_name(&team, speaker.name.as_str())?, ..speaker })
        }
        Some(_) => Ok(speaker),
        None => Ok(McpIdentity {
            team: led_by_this_session(&here.directories()?).map(|lead| lead.team),
            ..speaker
        }),
    }
}

/// Not the one of the PATH: it must be of our release.
fn server_path() -> Result<PathBuf, ErrorReport> {
    Ok(installed_program(&own_program()?, SERVER_PROGRAM, Path::is_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity_for(
        asked: Option<&str>,
        agent: Option<&str>,
        team: Option<&str>,
    ) -> Result<(String, String), ErrorKind> {
        let told = |speaker: McpIdentity| {
            (speaker.name.to_string(), speaker.team.map_or_else(String::new, String::from))
        };
        resolve_identity(asked, agent, team).map(told).map_err(|fault| fault.kind)
    }

    #[test]
    fn a_teammate_is_itself_whatever_the_arguments_say() {
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
    fn where_the_environment_says_nothing_the_arguments_do_and_else_it_is_a_lead() {
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
