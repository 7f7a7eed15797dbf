//! Runs a command in a process group of its own. So the user's Ctrl-C does not reach the command,
//! and all its processes can be killed together.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use platform::ExitHandle;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A running command without input and output.
#[derive(Debug)]
pub struct GroupedCommand {
    child: Child,
    /// `None` if the first process had exited already.
    process: Option<Arc<ExitHandle>>,
}

/// Ends a command that another thread waits for.
#[derive(Debug, Clone)]
pub struct CommandKiller(Option<Arc<ExitHandle>>);

impl GroupedCommand {
    /// Starts the command.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn start(mut command: Command) -> io::Result<GroupedCommand> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn()?;
        let process = ExitHandle::open(child.id()).map(Arc::new);
        Ok(GroupedCommand { child, process })
    }

    /// Ends the command while [`GroupedCommand::wait_at_most`] waits for it.
    pub fn killer(&self) -> CommandKiller {
        CommandKiller(self.process.clone())
    }

    /// Waits until the command exits, and kills the command if it still runs after `timeout`. Then
    /// kills all processes of its group that still run. `None` if the exit status is unknown.
    pub fn wait_at_most(mut self, timeout: Duration) -> Option<ExitStatus> {
        if let Some(process) = &self.process {
            process.exits_within(timeout).ok();
        }
        // The first process was not waited for, so the group has no process of another program.
        let group = Pid::from_raw(i32::try_from(self.child.id()).ok()?);
        killpg(group, Signal::SIGKILL).ok();
        self.child.wait().ok()
    }
}

impl CommandKiller {
    /// Kills the first process. Then the waiting thread kills the others.
    pub fn kill(&self) {
        // The only error is that the process has exited.
        self.0.iter().for_each(|process| drop(process.send_signal(rustix::process::Signal::KILL)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn all_processes_are_killed_after_the_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3>\"$1\"; sleep 600 & exec sleep 600", "sh"]).arg(&fifo);
        let group = GroupedCommand::start(command).unwrap();
        let mut reader = File::open(&fifo).unwrap();
        assert_eq!(group.wait_at_most(Duration::ZERO).unwrap().signal(), Some(9));
        // The end of the stream comes when no process has the writing end.
        reader.read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn another_thread_ends_the_wait() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let group = GroupedCommand::start(command).unwrap();
        let killer = group.killer();
        let waiter = std::thread::spawn(move || group.wait_at_most(Duration::from_secs(600)));
        killer.kill();
        assert_eq!(waiter.join().unwrap().unwrap().signal(), Some(9));
    }
}
