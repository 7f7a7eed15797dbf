//! Finds, waits for and kills the processes of a test environment. All of them have an environment
//! variable that identifies the test environment.

use platform::{ExitHandle, ProcessEntry};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The start time of a process. `None` if it has ended or is a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    ProcessEntry::start_time(pid).ok().flatten()
}

/// Processes with their pid, command line and handle.
#[derive(Debug)]
pub struct TaggedProcesses {
    processes: Vec<(u32, String, ExitHandle)>,
}

impl TaggedProcesses {
    /// Finds all running processes whose environment contains the entry `tag`, except this one.
    pub fn with_tag(tag: &str) -> TaggedProcesses {
        let system = platform::system();
        let table = system.processes().expect("the process table is readable");
        let pids = table.iter().map(|process| process.pid).filter(|pid| *pid != std::process::id());
        let processes = pids.filter_map(|pid| {
            let handle = ExitHandle::open(pid)?;
            let environment = system.environment(pid).ok()?;
            let has_tag = environment.split(|byte| *byte == 0).any(|entry| entry == tag.as_bytes());
            (has_tag && start_time(pid).is_some()).then(|| (pid, command_line(pid), handle))
        });
        TaggedProcesses { processes: processes.collect() }
    }

    /// The process with this pid. Empty if it has ended.
    pub fn single(pid: u32) -> TaggedProcesses {
        let handle = ExitHandle::open(pid);
        TaggedProcesses {
            processes: handle.into_iter().map(|handle| (pid, command_line(pid), handle)).collect(),
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
        self.processes.iter().all(|(_, _, handle)| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            handle.exits_within(remaining).is_ok_and(|has_exited| has_exited)
        })
    }

    /// Kills all processes with SIGKILL.
    pub fn kill(&self) {
        for (_, _, handle) in &self.processes {
            handle.send_signal(Signal::KILL).ok();
        }
    }
}

fn command_line(pid: u32) -> String {
    let bytes = platform::system().command_line(pid);
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}
