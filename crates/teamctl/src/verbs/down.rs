//! `down`: every agent is asked to end, those that do not answer are ended, then the daemon ends. With `--keep` each can
//! be brought back by `up --resume`.

use super::shutdown::{code, ending, endings};
use super::typed;
use super::up::rests;
use crate::here::{Here, misunderstood};
use crate::output;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::control::{AgentExit, Reply, Request};
use protocol::error::ErrorReport;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

/// Shut every team's agents down, then teamd
///
/// Agents are asked first; one that has not answered after 10 s is ended. Teams and their files stay. With --keep
/// the members are put to rest: teamctl up --resume starts them again, with their tasks, their worktrees and, where
/// the program can go on with one, their sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl down\n  teamctl down --keep")]
pub(crate) struct Down {
    /// Put the members to rest, for: teamctl up --resume
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(here: &Here, args: &Down) -> Result<ExitCode, ErrorReport> {
    here.lead_only("end teamd")?;
    // Opened before it goes, so that its end can be waited for and no other process is taken for it.
    let daemon = match here.ask(Request::Status)? {
        Reply::Status(status) => open(status.daemon.pid),
        _ => None,
    };
    let request = if args.keep { Request::StopDaemonAndSuspend } else { Request::StopDaemon };
    let Reply::Exits(reply) = here.ask(request)? else { return Err(misunderstood()) };
    daemon.iter().for_each(wait_for_its_end);
    if here.global.json || here.global.quiet {
        return Ok(endings(here, &reply, None, ""));
    }
    reply.exits.iter().for_each(|agent| output::line(&output::clean(&line(agent, args.keep))));
    output::line("teamd has ended.");
    let rest = reply.exits.iter().filter(|agent| agent.is_suspended).count();
    rests(rest, &typed::at(here)).iter().for_each(|line| output::line(line));
    Ok(code(&reply.exits))
}

/// Not all rest that were to: one whose spawn was under way has no life to go on with.
fn line(agent: &AgentExit, keep: bool) -> String {
    match (agent.is_suspended, keep) {
        (true, _) => format!("{} rests: {}", agent.name, agent.description),
        (false, true) => format!("{} has ended, and does not rest: {}", agent.name, agent.description),
        (false, false) => ending(agent),
    }
}

/// A process that lives, by its number.
pub(super) fn open(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// For 5 s.
pub(super) fn wait_for_its_end(process: &OwnedFd) {
    poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::from(5_000_u16)).ok();
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
        assert_eq!(line(&ended(true), true), "ann rests: stopped while it started");
        let told = "ann has ended, and does not rest: stopped while it started";
        assert_eq!(line(&ended(false), true), told);
        assert_eq!(line(&ended(false), false), "ann has ended: stopped while it started");
    }
}
