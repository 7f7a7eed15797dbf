//! `down`: every agent is asked to end, those that do not answer are ended, then the daemon ends. With `--keep` each can
//! be brought back by `up --resume`.

use super::shutdown::endings;
use crate::here::{Here, misunderstood};
use crate::output;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::control::{Reply, Request};
use protocol::fault::Fault;
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

pub(crate) fn run(here: &Here, args: &Down) -> Result<ExitCode, Fault> {
    here.lead_only("end teamd")?;
    // Opened before it goes, so that its end can be waited for and no other process is taken for it.
    let daemon = match here.ask(Request::Status)? {
        Reply::Status(status) => open(status.daemon.pid),
        _ => None,
    };
    let request = if args.keep { Request::Rest } else { Request::Down };
    let Reply::Endings(reply) = here.ask(request)? else { return Err(misunderstood()) };
    daemon.iter().for_each(wait_for_its_end);
    let code = endings(here, &reply, None, "");
    if !here.global.json && !here.global.quiet {
        output::line("teamd has ended.");
        if args.keep && !reply.ended.is_empty() {
            output::line("They rest; bring them back with: teamctl up --resume");
        }
    }
    Ok(code)
}

/// A process that lives, by its number.
pub(super) fn open(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// For 5 s.
pub(super) fn wait_for_its_end(process: &OwnedFd) {
    poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::from(5_000_u16)).ok();
}
