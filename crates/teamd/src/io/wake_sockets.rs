//! The daemon's ends of the agents' wake sockets.
//!
//! A wake only makes an agent check its inbox and tasks, so an unnecessary wake does no harm. When
//! a message arrives, the thread of the file watcher wakes the owner of the inbox directly, which
//! is faster than through the event loop. The event loop sends all other wakes.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The wake sockets of all agents. Clones share one map, so several threads can wake agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct WakeSockets(Arc<Mutex<HashMap<SpawnId, WakeSocket>>>);

/// The daemon's end of one agent's wake socket.
#[derive(Debug)]
pub(crate) struct WakeSocket {
    pub(crate) team: TeamName,
    pub(crate) name: MemberName,
    pub(crate) fd: OwnedFd,
}

impl WakeSockets {
    pub(crate) fn insert(&self, spawn: SpawnId, socket: WakeSocket) {
        self.lock().insert(spawn, socket);
    }

    pub(crate) fn remove(&self, spawn: &SpawnId) {
        self.lock().remove(spawn);
    }

    /// Wakes an agent. Does nothing if the agent has no wake socket.
    pub(crate) fn wake(&self, spawn: &SpawnId) {
        self.lock().get(spawn).into_iter().for_each(send_wake);
    }

    /// Wakes the agent that owns an inbox. `inbox` is the name of the inbox file without `.json`.
    /// Returns whether that agent has a wake socket.
    pub(crate) fn wake_inbox_owner(&self, team: &TeamName, inbox: &str) -> bool {
        let owner = MemberName::new_unchecked(inbox);
        let sockets = self.lock();
        let socket = sockets.values().find(|socket| socket.name == owner && socket.team == *team);
        socket.into_iter().for_each(send_wake);
        socket.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SpawnId, WakeSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes an agent by one byte on its wake socket. The byte is a newline, so that a shell script can
/// wait for it with `read`.
///
/// Errors are ignored. If the socket is full, it has unread wakes already. An agent that has exited
/// needs no wake.
fn send_wake(socket: &WakeSocket) {
    rustix::net::send(&socket.fd, b"\n", rustix::net::SendFlags::DONTWAIT).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_message_wakes_only_the_owner_of_the_inbox_and_ignores_case() {
        let sockets = WakeSockets::default();
        let survey = TeamName::parse("survey").unwrap();
        let mut ends = ["ann", "bob"].map(|name| {
            let (daemon_end, agent_end) = UnixStream::pair().unwrap();
            agent_end.set_nonblocking(true).unwrap();
            let name_key = MemberName::new_unchecked(name);
            let socket = WakeSocket { team: survey.clone(), name: name_key, fd: daemon_end.into() };
            sockets.insert(SpawnId::from_peer(name), socket);
            agent_end
        });
        assert!(sockets.wake_inbox_owner(&survey, "Ann"));
        assert!(!sockets.wake_inbox_owner(&TeamName::parse("other").unwrap(), "ann"));
        sockets.remove(&SpawnId::from_peer("bob"));
        assert!(!sockets.wake_inbox_owner(&survey, "bob"));
        let mut byte = [0; 4];
        assert_eq!(ends[0].read(&mut byte).unwrap(), 1);
        // A child that another test has just forked may have the daemon's end open until its `exec`.
        ends[1].set_nonblocking(false).unwrap();
        ends[1].set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        assert_eq!(ends[1].read(&mut byte).unwrap(), 0, "the daemon's end is closed");
    }
}
