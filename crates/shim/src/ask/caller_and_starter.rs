//! Watches the two processes that an ask depends on: the `teamctl ask` that waits for the answer,
//! and the MCP server that has started this `teamctl ask`. If one of them exits, the shim ends the
//! ask.

use nix::poll::{PollFd, PollFlags};
use platform::ExitHandle;
use protocol::teamctl_ask_setup_and_record::{AskAttachment, AskSetup};
use std::io::Stdin;
use std::os::fd::AsFd;

/// Who wants the answer.
#[derive(Debug)]
pub(super) struct AskCaller {
    /// Closed by a caller that waits. `None` if the caller does not wait.
    stdin: Option<Stdin>,
    starter: AskStarter,
}

/// The MCP server that has started the caller.
#[derive(Debug)]
enum AskStarter {
    /// There is none, or it cannot be watched.
    Unwatched,
    Running(ExitHandle),
    Exited,
}

impl AskCaller {
    pub(super) fn from_setup(setup: &AskSetup) -> AskCaller {
        let waits = setup.attachment == AskAttachment::Foreground;
        let starter = match setup.starter.map(|one| ExitHandle::open_started_at(one.pid, one.start_time)) {
            None | Some(Err(_)) => AskStarter::Unwatched,
            Some(Ok(None)) => AskStarter::Exited,
            Some(Ok(Some(handle))) => AskStarter::Running(handle),
        };
        AskCaller { stdin: waits.then(std::io::stdin), starter }
    }

    /// Whether the caller was gone from the beginning.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.starter, AskStarter::Exited)
    }

    /// The descriptors for poll(2). An event of one means that the caller is gone.
    pub(super) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let starter = match &self.starter {
            AskStarter::Running(handle) => Some(handle.as_fd()),
            AskStarter::Unwatched | AskStarter::Exited => None,
        };
        let fds = self.stdin.iter().map(AsFd::as_fd).chain(starter);
        fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect()
    }
}
