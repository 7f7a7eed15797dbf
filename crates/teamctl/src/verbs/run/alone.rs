//! One run of a team at a time: two would give back each other's tasks. The kernel frees the lock with the
//! process, however that ends; the file stays, and says whether the team is to go with its run.

use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use store::StateDir;

/// What the file says of a run without `--keep`, until its team is deleted.
const GOES: &str = "its team goes with it\n";

/// Held for as long as it lives.
pub(super) struct Alone {
    lock: File,
    path: PathBuf,
}

impl Alone {
    /// Whether the run before, which was killed, was to delete the team.
    pub(super) fn goes(&mut self) -> bool {
        let mut said = String::new();
        self.lock.rewind().and_then(|()| self.lock.read_to_string(&mut said)).is_ok() && said == GOES
    }

    /// Notes whether this one is.
    pub(super) fn note(&mut self, goes: bool) -> Result<(), Fault> {
        let text = if goes { GOES } else { "" };
        let written = self.lock.set_len(0).and_then(|()| self.lock.rewind());
        let written = written.and_then(|()| self.lock.write_all(text.as_bytes()));
        written.map_err(|error| Fault::io("write", &self.path, &error))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Closing alone would leave it with what was just forked.
        self.lock.unlock().ok();
    }
}

pub(super) fn alone(state: &StateDir, team: &TeamName) -> Result<Alone, Fault> {
    let path = state.path().join(format!("run-{team}.lock"));
    let cannot = |error: &dyn std::fmt::Display| Fault::io("lock", &path, error);
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = file.map_err(|error| cannot(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(Alone { lock, path }),
        Err(TryLockError::WouldBlock) => {
            let message = format!("cannot run team {team}: another teamctl run does so already");
            Err(Fault::new(Kind::Exists, message).hinted("see it with: teamctl status"))
        }
        Err(TryLockError::Error(error)) => Err(cannot(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_of_a_team_is_refused_and_one_of_another_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let [t, u] = ["t", "u"].map(|name| TeamName::parse(name).unwrap());
        let mut first = alone(&state, &t).unwrap();
        assert!(alone(&state, &t).is_err_and(|fault| fault.kind == Kind::Exists));
        assert!(alone(&state, &u).is_ok());
        assert!(!first.goes());
        first.note(true).unwrap();
        drop(first);
        let mut second = alone(&state, &t).unwrap();
        assert!(second.goes());
        second.note(false).unwrap();
        assert!(!second.goes());
    }
}
