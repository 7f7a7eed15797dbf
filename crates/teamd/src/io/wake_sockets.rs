//! Our ends of the agents' wake lines, rung by whoever sees that something came. A wake decides nothing, it says "look":
//! so for mail the watcher rings, without the way through the loop, which is a change of threads; for all else the loop.

use crate::core::id::SpawnId;
use protocol::name::{AgentName, TeamName};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct WakeSockets(Arc<Mutex<HashMap<SpawnId, WakeSocket>>>);

/// One agent's.
#[derive(Debug)]
pub(crate) struct WakeSocket {
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) fd: OwnedFd,
}

impl WakeSockets {
    pub(crate) fn put(&self, spawn: SpawnId, line: WakeSocket) {
        self.lock().insert(spawn, line);
    }

    pub(crate) fn remove(&self, spawn: &SpawnId) {
        self.lock().remove(spawn);
    }

    /// One byte to the agent, if it has a line.
    pub(crate) fn wake(&self, spawn: &SpawnId) {
        self.lock().get(spawn).into_iter().for_each(send_wake);
    }

    /// The same for whoever owns the inbox; whether anybody does.
    pub(crate) fn wake_inbox_owner(&self, team: &TeamName, inbox: &str) -> bool {
        let owner = AgentName::new_unchecked(inbox);
        let held = self.lock();
        let line = held.values().find(|line| line.name == owner && line.team == *team);
        line.into_iter().for_each(send_wake);
        line.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SpawnId, WakeSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A newline, so that a shell script can `read` it. A line that is full says "look" already, and one whose agent is gone
/// needs no word.
fn send_wake(line: &WakeSocket) {
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    rustix::net::send(&line.fd, b"\n", flags).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn mail_rings_its_owner_in_whatever_case_and_nobody_else() {
        let lines = WakeSockets::default();
        let survey = TeamName::parse("survey").unwrap();
        let mut ends = ["ann", "bob"].map(|name| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let line =
                WakeSocket { team: survey.clone(), name: AgentName::new_unchecked(name), fd: ours.into() };
            lines.put(SpawnId::from_peer(name), line);
            theirs
        });
        assert!(lines.wake_inbox_owner(&survey, "Ann"));
        assert!(!lines.wake_inbox_owner(&TeamName::parse("other").unwrap(), "ann"));
        lines.remove(&SpawnId::from_peer("bob"));
        assert!(!lines.wake_inbox_owner(&survey, "bob"));
        let mut byte = [0; 4];
        assert_eq!(ends[0].read(&mut byte).unwrap(), 1);
        assert_eq!(ends[1].read(&mut byte).unwrap(), 0, "it is hung up on");
    }
}
