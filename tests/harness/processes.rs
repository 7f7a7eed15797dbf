//! Finds, waits for and kills the processes of a test environment. All of them have an environment
//! variable that identifies the test environment.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The start time of a process (field 22 of /proc/PID/stat). `None` if it has ended or is a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    (fields.next()? != "Z").then(|| fields.nth(18)?.parse().ok())?
}

/// Processes with their pid, command line and pidfd.
#[derive(Debug)]
pub struct TaggedProcesses {
    processes: Vec<(u32, String, OwnedFd)>,
}

impl TaggedProcesses {
    /// Finds all running processes whose environment contains the entry `tag`, except this one.
    pub fn with_tag(tag: &str) -> TaggedProcesses {
        let pids = std::fs::read_dir("/proc").expect("/proc is readable").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let processes = pids.filter(|pid| *pid != std::process::id()).filter_map(|pid| {
            let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
            let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let has_tag = environ.split(|byte| *byte == 0).any(|entry| entry == tag.as_bytes());
            (has_tag && start_time(pid).is_some()).then(|| (pid, command_line(pid), pidfd))
        });
        TaggedProcesses { processes: processes.collect() }
    }

    /// The process with this pid. Empty if it has ended.
    pub fn single(pid: u32) -> TaggedProcesses {
        let pidfd = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = pidfd.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        TaggedProcesses {
            processes: pidfd.into_iter().map(|pidfd| (pid, command_line(pid), pidfd)).collect(),
        }
    }

    /// Pid and command line of each.
    pub fn list(&self) -> Vec<String> {
        self.processes.iter().map(|(pid, command, _)| format!("{pid} {command}")).collect()
    }

    /// The pid of each.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|(pid, ..)| *pid)
    }

    /// Waits until all processes have exited. Returns false if one still runs after `timeout`.
    pub fn exit_within(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        self.processes.iter().all(|(_, _, pidfd)| {
            let remaining = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
            matches!(poll(&mut fds, remaining.as_ref()), Ok(ready) if ready > 0)
        })
    }

    /// Kills all processes with SIGKILL.
    pub fn kill(&self) {
        for (_, _, pidfd) in &self.processes {
            pidfd_send_signal(pidfd, Signal::KILL).ok();
        }
    }
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}
