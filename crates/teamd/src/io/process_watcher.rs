//! The lives of processes that are not our children: known by pid and start time, watched by pidfd.
//!
//! One thread sleeps on all of them. (tokio's own way to watch a descriptor is `unsafe` to call.)

use crate::core::event::CoreEvent;
use crate::core::id::SpawnId;
use protocol::control::Process;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::event::epoll::{CreateFlags, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// Bytes, more than a line has: the kernel says all of it in one read.
const STAT_BUFFER: usize = 4096;

/// Field 22 of /proc/PID/stat, ticks since boot; none for a process that is gone or a zombie.
///
/// # Errors
/// Where it can't be looked up, which is not the same as gone: too many open files, say.
pub(crate) fn start_time(pid: u32) -> io::Result<Option<u64>> {
    let stat = match read_stat(pid) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // It ended between the opening and the reading.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(None);
        }
        line => line?,
    };
    // The second field is the program's name in parentheses, which may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_whitespace();
    let zombie = fields.next() == Some("Z");
    Ok(fields.nth(18).filter(|_| !zombie).and_then(|start| start.parse().ok()))
}

/// Its line in the table. The name in it is bytes, cut in the middle of a letter where it is long.
fn read_stat(pid: u32) -> io::Result<String> {
    let mut room = [0; STAT_BUFFER];
    let read = File::open(format!("/proc/{pid}/stat"))?.read(&mut room)?;
    Ok(String::from_utf8_lossy(&room[..read]).into_owned())
}

/// The id of this start of the machine; none where the kernel does not say.
pub(crate) fn boot_id() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Field 4 of its stat: whose child a process is. None where that is nobody, or the process gone.
pub(crate) fn parent_pid(pid: u32) -> Option<u32> {
    let stat = read_stat(pid).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

/// What came of the wish to watch a process.
#[derive(Debug)]
pub(crate) enum WatchOutcome {
    /// It lives; its death will be told.
    Alive,
    /// It is gone: proven.
    Dead,
    /// It could not be found out.
    Unknown(io::Error),
}

/// The watched joins.
#[derive(Debug)]
pub(crate) struct ProcessWatcher {
    epoll: Arc<OwnedFd>,
    /// By the number that epoll reports; numbers are never used again.
    watched: Arc<Mutex<HashMap<u64, SpawnId>>>,
    pidfds: HashMap<SpawnId, OwnedFd>,
    next: u64,
}

impl ProcessWatcher {
    /// Starts the thread, which ends with the process.
    pub(crate) fn start(events: UnboundedSender<CoreEvent>) -> io::Result<ProcessWatcher> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let watched: Arc<Mutex<HashMap<u64, SpawnId>>> = Arc::default();
        let (sleeper, names) = (epoll.clone(), watched.clone());
        std::thread::Builder::new()
            .name("lives".into())
            .spawn(move || report_deaths(&sleeper, &names, &events))?;
        Ok(ProcessWatcher { epoll, watched, pidfds: HashMap::new(), next: 0 })
    }

    pub(crate) fn is_watching(&self, spawn: &SpawnId) -> bool {
        self.pidfds.contains_key(spawn)
    }

    /// Watches. The start time is compared after the pidfd is open, so that a reused number is never taken for
    /// the one we mean.
    pub(crate) fn watch(&mut self, spawn: &SpawnId, process: Process) -> WatchOutcome {
        match self.open(process) {
            Ok(None) => WatchOutcome::Dead,
            Err(error) => WatchOutcome::Unknown(error),
            Ok(Some(pidfd)) => match self.add_to_epoll(spawn, pidfd) {
                Ok(()) => WatchOutcome::Alive,
                Err(error) => WatchOutcome::Unknown(error),
            },
        }
    }

    fn open(&self, process: Process) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            pidfd => pidfd?,
        };
        Ok((start_time(process.pid)? == Some(process.start_time)).then_some(pidfd))
    }

    fn add_to_epoll(&mut self, spawn: &SpawnId, pidfd: OwnedFd) -> io::Result<()> {
        self.next += 1;
        self.names().insert(self.next, spawn.clone());
        let once = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&*self.epoll, &pidfd, EventData::new_u64(self.next), once)?;
        self.pidfds.insert(spawn.clone(), pidfd);
        Ok(())
    }

    /// SIGKILL to just this join.
    pub(crate) fn kill(&self, spawn: &SpawnId) {
        let Some(pidfd) = self.pidfds.get(spawn) else { return };
        if let Err(error) = pidfd_send_signal(pidfd, Signal::KILL) {
            tracing::debug!("cannot kill a join: {error}");
        }
    }

    /// Closing the pidfd ends the watch.
    pub(crate) fn unwatch(&mut self, spawn: &SpawnId) {
        self.pidfds.remove(spawn);
        self.names().retain(|_, watched| watched != spawn);
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<u64, SpawnId>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report_deaths(epoll: &OwnedFd, names: &Mutex<HashMap<u64, SpawnId>>, events: &UnboundedSender<CoreEvent>) {
    let mut ready = Vec::with_capacity(16);
    loop {
        // Interrupted by a signal: the next round sees what there was.
        epoll::wait(epoll, spare_capacity(&mut ready), None).ok();
        for event in ready.drain(..) {
            failpoint::hit("life.ended");
            let name = names.lock().unwrap_or_else(PoisonError::into_inner).remove(&event.data.u64());
            if let Some(spawn) = name
                && events.send(CoreEvent::ProcessDied { spawn }).is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_means_another_process_by_now_is_nobodys() {
        let mut lives = ProcessWatcher::start(tokio::sync::mpsc::unbounded_channel().0).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, spawn) = (child.id(), SpawnId::generate());
        let start = start_time(pid).unwrap().unwrap();
        let other = Process { pid, start_time: start + 1 };
        assert!(matches!(lives.watch(&spawn, other), WatchOutcome::Dead));
        lives.kill(&spawn);
        assert!(!lives.is_watching(&spawn) && child.try_wait().unwrap().is_none(), "it lives");
        assert!(matches!(lives.watch(&spawn, Process { pid, start_time: start }), WatchOutcome::Alive));
        lives.kill(&spawn);
        assert!(!child.wait().unwrap().success());
    }
}
