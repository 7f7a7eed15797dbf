//! Watches processes and reports when they exit. The watched processes are the shims and the
//! processes of lead sessions.
//!
//! A process is identified by its pid and start time. One thread waits for the pidfds of all
//! processes with epoll. tokio could wait for pidfds too, but its function `AsyncFd::register` is
//! `unsafe`.

use crate::core::event::CoreEvent;
use crate::core::id::WatchId;
use crate::core::roster::PidOrigin;
use protocol::control::Process;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::event::epoll::{CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// Size of the buffer for the content of /proc/PID/stat, in bytes. The content is always shorter
/// than this, so one read gets all of it.
const STAT_BUFFER: usize = 4096;

/// When a process was started, in clock ticks since boot (field 22 of /proc/PID/stat). `None` if
/// the process is gone or a zombie.
///
/// # Errors
///
/// If /proc/PID/stat cannot be read although the process may exist, for example because this
/// process has too many open files.
pub(crate) fn start_time(pid: u32) -> io::Result<Option<u64>> {
    let stat = match read_stat(pid) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The process exited after its file was opened.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(None);
        }
        line => line?,
    };
    // The second field of /proc/PID/stat is the program's name in parentheses. The name itself can
    // contain spaces and parentheses, so the fields after the name are counted from the last
    // parenthesis.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_whitespace();
    let is_zombie = fields.next() == Some("Z");
    Ok(fields.nth(18).filter(|_| !is_zombie).and_then(|start| start.parse().ok()))
}

/// Reads /proc/PID/stat as text. Invalid UTF-8 is replaced, because the kernel may cut a long
/// program name within a UTF-8 character.
fn read_stat(pid: u32) -> io::Result<String> {
    let mut buffer = [0; STAT_BUFFER];
    let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Returns the origin of this process's pids: the boot of the machine and the PID namespace in
/// which they are valid. The kernel may reuse the number of an ended PID namespace, so the start
/// time of the namespace's first process is part of the origin too.
pub(crate) fn pid_origin() -> PidOrigin {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok().zip(start_time(1).ok().flatten());
    PidOrigin {
        boot_id: boot_id.map(|id| id.trim().to_owned()),
        pid_namespace: namespace.map(|(link, start)| format!("{} {start}", link.display())),
    }
}

/// The pid of the parent of the process `pid` (field 4 of /proc/PID/stat). `None` if the process
/// has no parent or is gone.
pub(crate) fn parent_pid(pid: u32) -> Option<u32> {
    let stat = read_stat(pid).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

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

/// The watched processes. The exit of a process is reported with its [`WatchId`].
#[derive(Debug)]
pub(crate) struct ProcessWatcher {
    epoll: Arc<OwnedFd>,
    /// The [`WatchId`] for each number that epoll reports. A number is never reused.
    watched: Arc<Mutex<HashMap<u64, WatchId>>>,
    pidfds: HashMap<WatchId, OwnedFd>,
    next: u64,
}

impl ProcessWatcher {
    /// Starts the thread that reports exits. The thread runs until the daemon exits.
    pub(crate) fn start(events: UnboundedSender<CoreEvent>) -> io::Result<ProcessWatcher> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let watched: Arc<Mutex<HashMap<u64, WatchId>>> = Arc::default();
        let (thread_epoll, thread_watched) = (epoll.clone(), watched.clone());
        std::thread::Builder::new()
            .name("processes".into())
            .spawn(move || report_deaths(&thread_epoll, &thread_watched, &events))?;
        Ok(ProcessWatcher { epoll, watched, pidfds: HashMap::new(), next: 0 })
    }

    pub(crate) fn is_watching(&self, watch: &WatchId) -> bool {
        self.pidfds.contains_key(watch)
    }

    /// Starts to watch a process.
    pub(crate) fn watch(&mut self, watch: &WatchId, process: Process) -> WatchOutcome {
        match self.open(process) {
            Ok(None) => WatchOutcome::Dead,
            Err(error) => WatchOutcome::Unknown(error),
            Ok(Some(pidfd)) => match self.add_to_epoll(watch, pidfd) {
                Ok(()) => WatchOutcome::Alive,
                Err(error) => WatchOutcome::Unknown(error),
            },
        }
    }

    /// Opens a pidfd of a process. `None` if the process has exited.
    fn open(&self, process: Process) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            // ENOENT, and EINVAL on old kernels, mean that the pid is now the id of a thread. So
            // the process has exited.
            Err(Errno::SRCH | Errno::NOENT | Errno::INVAL) => return Ok(None),
            pidfd => pidfd?,
        };
        // The start time is compared after the pidfd is open, so a reused pid is always detected.
        Ok((start_time(process.pid)? == Some(process.start_time)).then_some(pidfd))
    }

    fn add_to_epoll(&mut self, watch: &WatchId, pidfd: OwnedFd) -> io::Result<()> {
        self.next += 1;
        self.lock_watched().insert(self.next, watch.clone());
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&*self.epoll, &pidfd, EventData::new_u64(self.next), flags)?;
        self.pidfds.insert(watch.clone(), pidfd);
        Ok(())
    }

    /// Sends SIGKILL to a watched shim, but not to its agent. Does nothing if the shim is not
    /// watched.
    pub(crate) fn kill(&self, watch: &WatchId) {
        let Some(pidfd) = self.pidfds.get(watch) else { return };
        if let Err(error) = pidfd_send_signal(pidfd, Signal::KILL) {
            tracing::debug!("cannot kill a shim: {error}");
        }
    }

    /// Ends the watch and closes the pidfd.
    pub(crate) fn unwatch(&mut self, watch: &WatchId) {
        self.pidfds.remove(watch);
        self.lock_watched().retain(|_, watched| watched != watch);
    }

    fn lock_watched(&self) -> std::sync::MutexGuard<'_, HashMap<u64, WatchId>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's loop: sends [`CoreEvent::ProcessDied`] for each process that exits.
fn report_deaths(
    epoll: &OwnedFd,
    watched: &Mutex<HashMap<u64, WatchId>>,
    events: &UnboundedSender<CoreEvent>,
) {
    let mut ready = Vec::with_capacity(16);
    loop {
        // If a signal interrupts the wait, the next call returns the pending events.
        epoll::wait(epoll, spare_capacity(&mut ready), None).ok();
        for event in ready.drain(..) {
            failpoint::hit("process.died");
            let watch = watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&event.data.u64());
            if let Some(watch) = watch
                && events.send(CoreEvent::ProcessDied { watch }).is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::SpawnId;

    #[test]
    fn a_reused_pid_counts_as_exited() {
        let mut processes = ProcessWatcher::start(tokio::sync::mpsc::unbounded_channel().0).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, spawn) = (child.id(), WatchId::Shim(SpawnId::generate()));
        let start = start_time(pid).unwrap().unwrap();
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
    /// After a restart of a container, pids are low, so the pid of an earlier process is soon the
    /// id of a thread.
    #[test]
    fn a_pid_that_is_now_that_of_a_thread_counts_as_exited() {
        let mut processes = ProcessWatcher::start(tokio::sync::mpsc::unbounded_channel().0).unwrap();
        let mut watch_own_thread = || {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            let pid = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let start_time = start_time(pid).unwrap().unwrap();
            processes.watch(&WatchId::Shim(SpawnId::generate()), Process { pid, start_time })
        };
        let outcome = std::thread::scope(|scope| scope.spawn(&mut watch_own_thread).join().unwrap());
        assert!(matches!(outcome, WatchOutcome::Dead), "{outcome:?}");
    }
}
