//! Ends the processes that a command in a worktree has started. The command gets an environment
//! variable with the path of the worktree, and its child processes inherit the variable. So all of
//! them are found, even in other process sessions.

use crate::error::{Error, io_error};
use platform::ProcessEntry;
use rustix::process::Signal;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL, and how long a process may take to end after SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Ends all processes whose environment variable `name` has the value `path`, except this process.
/// Sends SIGTERM first, so that git can remove its lock files, and then SIGKILL.
///
/// # Errors
///
/// [`Error::Io`] if the processes cannot be listed, or if one does not end.
pub fn end_processes_with_variable(name: &str, path: &Path) -> Result<(), Error> {
    for signal in [Signal::TERM, Signal::KILL] {
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            let processes = processes_with_variable(name, path, deadline)?;
            if processes.is_empty() {
                return Ok(());
            }
            signal_and_wait(&processes, signal, deadline).map_err(io_error("end the processes in", path))?;
        }
    }
    let error = std::io::Error::new(ErrorKind::TimedOut, "a process does not end");
    Err(io_error("end the processes in", path)(error))
}

fn processes_with_variable(name: &str, path: &Path, deadline: Instant) -> Result<Vec<ProcessEntry>, Error> {
    let entry = format!("{name}={}", path.display());
    let found = platform::find_by_environment(platform::system(), &entry, deadline);
    let mut found = found.map_err(io_error("list the processes in", path))?;
    found.retain(|process| process.pid != std::process::id());
    Ok(found)
}

/// Sends the signal to each process. Returns when all have exited, or at the deadline.
fn signal_and_wait(processes: &[ProcessEntry], signal: Signal, deadline: Instant) -> std::io::Result<()> {
    let system = platform::system();
    let handles: Vec<_> = processes.iter().map(|process| system.open_process(process.pid)).collect();
    for process in processes {
        // A process that has exited meanwhile gets no signal.
        system.send_signal(process, signal).ok();
    }
    for handle in handles {
        if let Some(handle) = handle? {
            handle.exits_within(deadline.saturating_duration_since(Instant::now()))?;
        }
    }
    Ok(())
}
