//! Waits for the exit of a process with kqueue.

use super::process_table_and_details;
use crate::process_exit_handle::{ExitHandle, to_pid};
use crate::signal_by_pid::{confirm_absence, kill_if_same};
use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// Opens a kqueue that becomes readable when the process exits. `None` if the process has already
/// exited.
pub(super) fn open(pid: u32) -> io::Result<Option<ExitHandle>> {
    let Some(raw_pid) = to_pid(pid) else { return Ok(None) };
    let fd = kqueue()?;
    let filter = EventFilter::Proc { pid: raw_pid, flags: ProcessEvents::EXIT };
    let exit = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
    match register(&fd, exit) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let entry = confirm_absence(pid, process_table_and_details::read(pid))?;
    let Some(entry) = entry.filter(|entry| !entry.zombie) else { return Ok(None) };
    let send_signal =
        move |_: &OwnedFd, signal| kill_if_same(&entry, process_table_and_details::read(pid), signal);
    Ok(Some(ExitHandle { fd, send_signal: Box::new(send_signal) }))
}

#[allow(unsafe_code)]
fn register(kqueue: &OwnedFd, event: Event) -> Result<(), Errno> {
    let mut none: [Event; 0] = [];
    // SAFETY: the event refers to a pid and to no descriptor, so none can be closed while it is registered.
    unsafe { kevent(kqueue, &[event], &mut none[..], None) }.map(drop)
}
