//! `down`: every agent is asked to end, those that do not answer are ended, then the daemon ends.

use super::shutdown::endings;
use crate::here::{Here, misunderstood};
use crate::output;
use protocol::control::{Reply, Request};
use protocol::fault::Fault;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::process::ExitCode;

/// Shut every team's agents down, then teamd
///
/// Agents are asked first; one that has not answered after 10 s is ended. Teams and their files stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl down")]
pub(crate) struct Down {}

pub(crate) fn run(here: &Here, _args: &Down) -> Result<ExitCode, Fault> {
    here.lead_only("end teamd")?;
    // Opened before it goes, so that its end can be waited for and no other process is taken for it.
    let daemon = match here.ask(Request::Status)? {
        Reply::Status(status) => open(status.daemon.pid),
        _ => None,
    };
    let Reply::Endings(reply) = here.ask(Request::Down)? else { return Err(misunderstood()) };
    if let Some(pidfd) = daemon {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;
        poll(&mut [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)], PollTimeout::from(5_000_u16)).ok();
    }
    let code = endings(here, &reply, None, "");
    if !here.global.json && !here.global.quiet {
        output::line("teamd has ended.");
    }
    Ok(code)
}

fn open(pid: u32) -> Option<std::os::fd::OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}
