//! The worker's commands: `sh -c`, standard input from nowhere, output live in the pane.
//!
//! While one runs the worker waits for its end, and with `--busy reject` for the wake line too.

use super::{Busy, Worker};
use protocol::fault::{Fault, Kind};
use protocol::message::Message;
use protocol::task::Task;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

impl Worker<'_> {
    /// None: it succeeded; else how it failed.
    pub(super) fn execute(&self, command: &str, task: &Task) -> Result<Option<String>, Fault> {
        let mut shell = shell(command);
        shell.env("TASK_ID", task.id.to_string());
        shell.env("TASK_SUBJECT", without_nul(&task.subject));
        shell.env("TASK_DESCRIPTION", without_nul(&task.description));
        let status = self.wait_for(&mut shell, &format!("task {} runs", task.id))?;
        Ok(failure(status))
    }

    pub(super) fn on_message(&self, command: &str, message: &Message) -> Result<ExitStatus, Fault> {
        let mut shell = shell(command);
        shell.env("MESSAGE_FROM", without_nul(&message.from));
        shell.env("MESSAGE_SUMMARY", without_nul(message.summary.as_deref().unwrap_or_default()));
        shell.env("MESSAGE_TEXT", without_nul(&message.text));
        self.wait_for(&mut shell, "a message is being handled")
    }

    fn wait_for(&self, shell: &mut Command, busy_with: &str) -> Result<ExitStatus, Fault> {
        let child = shell.spawn();
        let mut child =
            child.map_err(|error| Fault::new(Kind::Missing, format!("cannot start sh: {error}")))?;
        if self.args.busy == Busy::Reject {
            self.reject_until_ended(&child, busy_with)?;
        }
        child
            .wait()
            .map_err(|error| Fault::new(Kind::Internal, format!("cannot wait for a command: {error}")))
    }

    /// A request that came before the command counts as one that came while it runs.
    fn reject_until_ended(&self, child: &Child, why: &str) -> Result<(), Fault> {
        let Some(end) = pidfd(child) else { return Ok(()) };
        loop {
            self.reject_requests(why)?;
            let mut fds = [
                PollFd::new(end.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.line.as_fd(), PollFlags::POLLIN),
            ];
            poll(&mut fds, PollTimeout::NONE).ok();
            if fds[0].any() == Some(true) {
                return Ok(());
            }
            self.line.drain();
        }
    }
}

/// Our own child, not yet waited for: its number can't have been reused.
fn pidfd(child: &Child) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(child.id()).ok()?)?, PidfdFlags::empty()).ok()
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    // The line is ours, and its number would mean nothing to the command.
    shell.env_remove("TEAMD_WAKE_FD");
    shell
}

/// An environment can't hold it, and a task must not fail for it.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

fn failure(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => Some("it ended in an unknown way".to_owned()),
    }
}
