//! Watches processes and reports when they exit. The watched processes are the shims and the
//! processes of lead sessions.
//!
//! A process is identified by its pid and start time. One thread waits for the handles of all
//! processes with poll(2).

use crate::core::connection_spawn_and_watch_ids::WatchId;
use crate::core::core_event::CoreEvent;
use platform::{ExitHandle, ProcessEntry};
use protocol::control_socket::Process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// The result of [`ProcessWatcher::watch`].
#[derive(Debug)]
pub(crate) enum WatchOutcome {
    /// The process runs. Its exit will be reported as [`CoreEvent::ProcessDied`].
    Alive,
    /// The process has certainly exited.
    Dead,
    /// Whether the process runs could not be determined.
    Unknown(io::Error),
}

/// The watched processes. The daemon's event loop and the thread share them.
type WatchedProcesses = Mutex<HashMap<WatchId, Arc<ExitHandle>>>;

/// The watched processes, each by the id that its exit is reported with.
#[derive(Debug)]
pub(crate) struct ProcessWatcher {
    watched: Arc<WatchedProcesses>,
    /// A byte on this socket makes the thread wait for the new set of processes.
    wake: UnixStream,
}

impl ProcessWatcher {
    /// Starts the thread that reports exits. The thread runs until the daemon exits.
    pub(crate) fn start(events: UnboundedSender<CoreEvent>) -> io::Result<ProcessWatcher> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let watched: Arc<WatchedProcesses> = Arc::default();
        let thread_watched = Arc::clone(&watched);
        std::thread::Builder::new()
            .name("processes".into())
            .spawn(move || report_deaths(&woken, &thread_watched, &events))?;
        Ok(ProcessWatcher { watched, wake })
    }

    pub(crate) fn is_watching(&self, watch: &WatchId) -> bool {
        lock(&self.watched).contains_key(watch)
    }

    /// Starts to watch a process.
    pub(crate) fn watch(&mut self, watch: &WatchId, process: Process) -> WatchOutcome {
        match open(process) {
            Ok(None) => WatchOutcome::Dead,
            Err(error) => WatchOutcome::Unknown(error),
            Ok(Some(handle)) => {
                lock(&self.watched).insert(watch.clone(), Arc::new(handle));
                self.wake_thread();
                WatchOutcome::Alive
            }
        }
    }

    /// Sends SIGKILL to a watched shim, but not to its agent. Does nothing if the shim is not
    /// watched.
    pub(crate) fn kill(&self, watch: &WatchId) {
        let Some(handle) = lock(&self.watched).get(watch).cloned() else { return };
        if let Err(error) = handle.send_signal(Signal::KILL) {
            tracing::debug!("cannot kill a shim: {error}");
        }
    }

    /// Ends the watch.
    pub(crate) fn unwatch(&mut self, watch: &WatchId) {
        if lock(&self.watched).remove(watch).is_some() {
            self.wake_thread();
        }
    }

    fn wake_thread(&self) {
        // If the socket is full, the thread has not yet read an earlier byte, and will wake.
        (&self.wake).write_all(&[0]).ok();
    }
}

/// Opens a handle of a process. `None` if the process has exited.
fn open(process: Process) -> io::Result<Option<ExitHandle>> {
    let handle = platform::system().open_process(process.pid)?;
    // The start time is compared after the handle is open, so a reused pid is always detected.
    let is_same = ProcessEntry::start_time(process.pid)? == Some(process.start_time);
    Ok(handle.filter(|_| is_same))
}

fn lock(watched: &WatchedProcesses) -> MutexGuard<'_, HashMap<WatchId, Arc<ExitHandle>>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's loop: sends [`CoreEvent::ProcessDied`] once for each watched process that exits.
fn report_deaths(woken: &UnixStream, watched: &WatchedProcesses, events: &UnboundedSender<CoreEvent>) {
    loop {
        for watch in wait_for_exits(woken, watched) {
            failpoint::hit("process.died");
            let is_watched = lock(watched).remove(&watch).is_some();
            if is_watched && events.send(CoreEvent::ProcessDied { watch }).is_err() {
                return;
            }
        }
    }
}

/// Waits until a process exits or the set of processes changes. Returns the processes that have
/// exited.
fn wait_for_exits(mut woken: &UnixStream, watched: &WatchedProcesses) -> Vec<WatchId> {
    let processes: Vec<(WatchId, Arc<ExitHandle>)> =
        lock(watched).iter().map(|(watch, handle)| (watch.clone(), Arc::clone(handle))).collect();
    let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
    fds.extend(processes.iter().map(|(_, handle)| PollFd::new(&**handle, PollFlags::IN)));
    // If a signal interrupts the wait, the next call returns the pending exits.
    let is_ready: Vec<bool> = match poll(&mut fds, None) {
        Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect(),
        Err(_) => Vec::new(),
    };
    if is_ready.first() == Some(&true) {
        while woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    }
    let exited = processes.into_iter().zip(is_ready.into_iter().skip(1)).filter(|(_, is_ready)| *is_ready);
    exited.map(|((watch, _), _)| watch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::connection_spawn_and_watch_ids::SpawnId;

    #[test]
    fn a_reused_pid_counts_as_exited() {
        let mut processes = ProcessWatcher::start(tokio::sync::mpsc::unbounded_channel().0).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, spawn) = (child.id(), WatchId::Shim(SpawnId::generate()));
        let start = ProcessEntry::start_time(pid).unwrap().unwrap();
        let other = Process { pid, start_time: start + 1 };
        assert!(matches!(processes.watch(&spawn, other), WatchOutcome::Dead));
        processes.kill(&spawn);
        assert!(
            !processes.is_watching(&spawn) && child.try_wait().unwrap().is_none(),
            "the child still runs"
        );
        assert!(matches!(processes.watch(&spawn, Process { pid, start_time: start }), WatchOutcome::Alive));
        processes.kill(&spawn);
        assert!(!child.wait().unwrap().success());
    }

    /// Linux may give the pid of an exited process to a thread of another process. The watched
    /// process then counts as exited. This is most likely after the restart of a container, where
    /// the ids begin at low numbers again.
    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux gives threads the ids of processes")]
    fn a_pid_that_is_now_that_of_a_thread_counts_as_exited() {
        let mut processes = ProcessWatcher::start(tokio::sync::mpsc::unbounded_channel().0).unwrap();
        let mut watch_own_thread = || {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            let pid = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let start_time = ProcessEntry::start_time(pid).unwrap().unwrap();
            processes.watch(&WatchId::Shim(SpawnId::generate()), Process { pid, start_time })
        };
        let outcome = std::thread::scope(|scope| scope.spawn(&mut watch_own_thread).join().unwrap());
        assert!(matches!(outcome, WatchOutcome::Dead), "{outcome:?}");
    }
}
