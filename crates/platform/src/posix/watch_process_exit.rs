//! Reports the exit of a process through a pipe, on systems that have only the POSIX calls for
//! this. A thread waits for the exit and then closes its end of the pipe. The other end becomes
//! readable.

use super::ps_table::find;
use crate::ProcessEntry;
use crate::process_exit_handle::{ExitHandle, to_pid};
use crate::signal_by_pid::kill_if_same;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, test_kill_process, waitid};
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;

/// How often a process that is no child is looked for: POSIX reports its exit to its parent alone.
const RESCAN_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// Every eighth check for the exit runs `ps`, which is slow. The other checks only ask the kernel
/// whether the pid exists. If the process is a zombie, or if another process has its pid now, only
/// the next `ps` shows that the process has exited.
const SEARCHES_PER_PS: u32 = 8;

/// Opens a handle. `None` if the process has exited.
pub(super) fn open(pid: u32) -> io::Result<Option<ExitHandle>> {
    let Some(entry) = find(pid)? else { return Ok(None) };
    let (reader, writer) = io::pipe()?;
    let is_child = entry.parent == std::process::id();
    std::thread::Builder::new().name("exit".to_owned()).spawn(move || {
        if !is_child || wait_for_child(pid).is_err() {
            wait_for_other(entry, &writer);
        }
    })?;
    let send_signal = move |_: &OwnedFd, signal| kill_if_same(&entry, find(pid)?, signal);
    Ok(Some(ExitHandle { fd: reader.into(), send_signal: Box::new(send_signal) }))
}

/// Waits for a child of this process, and leaves it for the parent's own `wait`.
fn wait_for_child(pid: u32) -> Result<(), Errno> {
    let pid = to_pid(pid).ok_or(Errno::SRCH)?;
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            result => return result.map(drop),
        }
    }
}

/// Waits for another process. Ends early when the handle is dropped, which closes the pipe.
fn wait_for_other(entry: ProcessEntry, writer: &PipeWriter) {
    let has_exited = |search: u32| {
        let is_missing = to_pid(entry.pid).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        // An error of `ps` does not mean that the process has exited.
        let is_other = || {
            let current = find(entry.pid);
            current.is_ok_and(|current| {
                !current.is_some_and(|current| current.is_same(&entry) && !current.zombie)
            })
        };
        is_missing || search.is_multiple_of(SEARCHES_PER_PS) && is_other()
    };
    for search in 1.. {
        // The end for writing has an error when no process can read from the pipe.
        let mut ends = [PollFd::new(writer, PollFlags::empty())];
        let is_dropped = poll(&mut ends, Some(&RESCAN_INTERVAL)).is_ok_and(|ready| ready > 0);
        if is_dropped || has_exited(search) {
            return;
        }
    }
}
