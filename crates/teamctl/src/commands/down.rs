//! `down`: every agent is asked to end, those that do not answer are ended, then the daemon ends. With `--suspend` each can
//! be brought back by `up --resume`.

use super::shutdown::{exit_code, exit_line, print_exits};
use super::up::suspended_line;
use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output;
use client::daemon_process::{open_pidfd, wait_for_exit};
use client::error::unexpected_reply;
use protocol::control::{AgentExit, Reply, Request};
use protocol::error::ErrorReport;
use std::process::ExitCode;

/// Shut every team's agents down, then teamd
///
/// Agents are asked first; one that has not answered after 10 s is ended. Teams and their files stay. With --suspend
/// the members are put to rest: teamctl up --resume starts them again, with their tasks, their worktrees and, where
/// the program can go on with one, their sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl down\n  teamctl down --suspend")]
pub(crate) struct DownArgs {
    /// Put the members to rest, for: teamctl up --resume
    #[arg(long)]
    suspend: bool,
}

pub(crate) fn run(here: &CommandContext, args: &DownArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("end teamd")?;
    // Opened before it goes, so that its end can be waited for and no other process is taken for it.
    let daemon = match here.call_daemon(Request::Status)? {
        Reply::Status(status) => open_pidfd(status.daemon.pid),
        _ => None,
    };
    let request = if args.suspend { Request::StopDaemonAndSuspend } else { Request::StopDaemon };
    let Reply::Exits(reply) = here.call_daemon(request)? else { return Err(unexpected_reply()) };
    daemon.iter().for_each(wait_for_exit);
    if here.args.json || here.args.quiet {
        return Ok(print_exits(here, &reply, None, ""));
    }
    reply
        .exits
        .iter()
        .for_each(|agent| output::print_line(&output::sanitize(&result_line(agent, args.suspend))));
    output::print_line("teamd has ended.");
    let rest = reply.exits.iter().filter(|agent| agent.is_suspended).count();
    suspended_line(rest, &command_rewriter::suggested_commands(here))
        .iter()
        .for_each(|line| output::print_line(line));
    Ok(exit_code(&reply.exits))
}

/// Not all rest that were to: one whose spawn was under way has no life to go on with.
fn result_line(agent: &AgentExit, keep: bool) -> String {
    match (agent.is_suspended, keep) {
        (true, _) => format!("{} rests: {}", agent.name, agent.description),
        (false, true) => format!("{} has ended, and does not rest: {}", agent.name, agent.description),
        (false, false) => exit_line(agent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::name::AgentName;

    #[test]
    fn who_does_not_rest_is_not_said_to() {
        let ended = |rests| AgentExit {
            name: AgentName::parse("ann").unwrap(),
            team: None,
            description: "stopped while it started".into(),
            has_exited: true,
            is_suspended: rests,
            request_id: None,
        };
        assert_eq!(result_line(&ended(true), true), "ann rests: stopped while it started");
        let told = "ann has ended, and does not rest: stopped while it started";
        assert_eq!(result_line(&ended(false), true), told);
        assert_eq!(result_line(&ended(false), false), "ann has ended: stopped while it started");
    }
}
