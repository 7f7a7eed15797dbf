//! `teamctl down`: shuts down all agents and stops the daemon. With `--suspend`, `teamctl up
//! --resume` can start the members again.

use super::daemon_suspension_and_budget_lines::suspended_line;
use super::shutdown::{cleanup_text, exit_code, exit_line, print_exits};
use crate::add_options_to_suggested_commands;
use crate::command_context::CommandContext;
use crate::output;
use platform::ExitHandle;
use protocol::control_socket::{AgentExit, ExitsReply, Reply, Request};
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;
use std::time::Duration;

/// How long the daemon may take to exit after its reply.
const DAEMON_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Shut down all agents and stop teamd
///
/// Example: teamctl down
///
/// teamd asks the agents to shut down, and ends an agent that has not answered after 10 s. Teams
/// and their files stay.
///
/// With --suspend, `teamctl up --resume` starts the members again with their tasks and worktrees. A
/// member also keeps its session if its program can resume one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl down --suspend")]
pub(crate) struct DownArgs {
    /// Suspend the members; `teamctl up --resume` starts them again
    #[arg(long)]
    suspend: bool,
}

pub(crate) fn run(context: &CommandContext, args: &DownArgs) -> Result<ExitCode, ErrorReport> {
    // A handle refers to one process even if its process id is used again. So it is opened now,
    // while the daemon still runs.
    let daemon = match context.call_daemon(Request::Status)? {
        Reply::Status(status) => ExitHandle::open(status.daemon.pid),
        _ => None,
    };
    let request = if args.suspend { Request::StopDaemonAndSuspend } else { Request::StopDaemon };
    let reply: ExitsReply = context.request(request)?;
    let has_ended = daemon.is_none_or(|daemon| daemon.exits_within(DAEMON_EXIT_TIMEOUT).unwrap_or(true));
    if context.args.json || context.args.quiet {
        return Ok(print_exits(context, &reply, None, ""));
    }
    let line = if args.suspend { suspend_line } else { exit_line };
    for agent in &reply.exits {
        output::print_line(&output::sanitize(&line(&shown_name(agent, &reply.exits), agent)));
    }
    output::print_line(match has_ended {
        true => "teamd has ended.",
        false => "teamd still writes its files, and ends after that.",
    });
    let suspended = reply.exits.iter().filter(|agent| agent.is_suspended).count();
    suspended_line(suspended, &add_options_to_suggested_commands::suggested_commands(context))
        .iter()
        .for_each(|line| output::print_line(line));
    Ok(exit_code(&reply.exits))
}

/// The line of one agent after `--suspend`. An agent that was still starting can't be suspended.
fn suspend_line(name: &str, agent: &AgentExit) -> String {
    let state = if agent.is_suspended { "is suspended" } else { "has ended, and is not suspended" };
    format!("{name} {state}: {}{}", agent.description, cleanup_text(agent))
}

/// The name of a member, with its team if members of several teams have ended.
fn shown_name(agent: &AgentExit, exits: &[AgentExit]) -> String {
    match exits.iter().all(|other| other.team == agent.team) {
        true => agent.name.to_string(),
        false => format!("{}@{}", agent.name, agent.team),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_and_member_names::{MemberName, TeamName};

    #[test]
    fn only_a_suspended_agent_is_reported_as_suspended() {
        let exit = |is_suspended| AgentExit {
            name: MemberName::parse("ann").unwrap(),
            team: TeamName::parse("survey").unwrap(),
            description: "stopped while it started".into(),
            has_exited: true,
            cleanup_error: None,
            is_suspended,
            request_id: None,
        };
        assert_eq!(suspend_line("ann", &exit(true)), "ann is suspended: stopped while it started");
        let not_suspended = "ann has ended, and is not suspended: stopped while it started";
        assert_eq!(suspend_line("ann", &exit(false)), not_suspended);
        assert_eq!(exit_line("ann", &exit(false)), "ann has ended: stopped while it started");
        let other_team = AgentExit { team: TeamName::parse("u").unwrap(), ..exit(false) };
        assert_eq!(shown_name(&exit(false), &[exit(false)]), "ann");
        let team = exit(false).team;
        assert_eq!(shown_name(&exit(false), &[exit(false), other_team]), format!("ann@{team}"));
    }
}
