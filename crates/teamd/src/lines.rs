//! Our ends of the agents' wake lines, rung by whoever sees that something came. A wake decides nothing, it says "look":
//! so for mail the watcher rings, without the way through the loop, which is a change of threads; for all else the loop.

use crate::roster::SpawnId;
use protocol::name::{AgentName, TeamName};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<HashMap<SpawnId, Line>>>);

/// One agent's.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) end: OwnedFd,
}

impl Lines {
    pub(crate) fn put(&self, spawn: SpawnId, line: Line) {
        self.held().insert(spawn, line);
    }

    pub(crate) fn remove(&self, spawn: &SpawnId) {
        self.held().remove(spawn);
    }

    /// One byte to the agent, if it has a line.
    pub(crate) fn ring(&self, spawn: &SpawnId) {
        self.held().get(spawn).into_iter().for_each(ring);
    }

    /// The same for whoever owns the inbox; whether anybody does.
    pub(crate) fn ring_owner(&self, team: &TeamName, inbox: &str) -> bool {
        let owner = AgentName::new_unchecked(inbox);
        let held = self.held();
        let line = held.values().find(|line| line.name == owner && line.team == *team);
        line.into_iter().for_each(ring);
        line.is_some()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SpawnId, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A newline, so that a shell script can `read` it. A line that is full says "look" already, and one whose agent is gone
/// needs no word.
fn ring(line: &Line) {
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    rustix::net::send(&line.end, b"\n", flags).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn mail_rings_its_owner_in_whatever_case_and_nobody_else() {
        let lines = Lines::default();
        let survey = TeamName::parse("survey").unwrap();
        let mut ends = ["ann", "bob"].map(|name| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let line = Line { team: survey.clone(), name: AgentName::new_unchecked(name), end: ours.into() };
            lines.put(SpawnId::claimed(name), line);
            theirs
        });
        assert!(lines.ring_owner(&survey, "Ann"));
        assert!(!lines.ring_owner(&TeamName::parse("other").unwrap(), "ann"));
        lines.remove(&SpawnId::claimed("bob"));
        assert!(!lines.ring_owner(&survey, "bob"));
        let mut byte = [0; 4];
        assert_eq!(ends[0].read(&mut byte).unwrap(), 1);
        assert_eq!(ends[1].read(&mut byte).unwrap(), 0, "it is hung up on");
    }
}
