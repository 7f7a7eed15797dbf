//! One run of a team at a time: two would give back each other's tasks. The kernel frees the lock with the
//! process, however that ends; the file stays, and says whether the team is to go with its run, and how that has ended
//! whose team was being deleted.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use store::StateDir;

/// What the file says of a run without `--keep-team`, until its team is deleted.
const DELETE_TEAM_LINE: &str = "delete_team\n";
/// The same of one that is over, with its exit code behind.
const DELETING_PREFIX: &str = "deleting exit_code=";

/// What is noted of a run, for the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunNote {
    /// Its team stays; also of none, and of one that has come to its end.
    KeepTeam,
    /// Its team goes with it.
    DeleteTeam,
    /// All was over, and this was its exit code: nothing but the deletion is left to do.
    Deleting(u8),
}

impl RunNote {
    /// The first line counts: of a kill in the midst of noting there may be more.
    fn parse(text: &str) -> RunNote {
        let line = text.split_inclusive('\n').next().unwrap_or_default();
        let code = line.strip_prefix(DELETING_PREFIX).and_then(|code| code.trim_end().parse().ok());
        match code {
            Some(code) => RunNote::Deleting(code),
            None if line == DELETE_TEAM_LINE => RunNote::DeleteTeam,
            None => RunNote::KeepTeam,
        }
    }

    fn text(self) -> String {
        match self {
            RunNote::KeepTeam => String::new(),
            RunNote::DeleteTeam => DELETE_TEAM_LINE.to_owned(),
            RunNote::Deleting(code) => format!("{DELETING_PREFIX}{code}\n"),
        }
    }
}

/// Held for as long as it lives.
pub(crate) struct RunLock {
    lock: File,
    path: PathBuf,
}

impl RunLock {
    /// What is noted of the run before, if that was killed.
    pub(crate) fn previous_note(&mut self) -> RunNote {
        let mut said = String::new();
        let read = self.lock.rewind().and_then(|()| self.lock.read_to_string(&mut said));
        read.map_or(RunNote::KeepTeam, |_| RunNote::parse(&said))
    }

    /// Notes this of the present one.
    pub(crate) fn write_note(&mut self, note: RunNote) -> Result<(), ErrorReport> {
        let text = note.text();
        let written = self.lock.rewind().and_then(|()| self.lock.write_all(text.as_bytes()));
        written
            .and_then(|()| self.lock.set_len(text.len() as u64))
            .map_err(|error| ErrorReport::from_io("write", &self.path, &error))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing alone would leave it with what was just forked.
        self.lock.unlock().ok();
    }
}

pub(crate) fn acquire(state: &StateDir, team: &TeamName) -> Result<RunLock, ErrorReport> {
    let path = state.path().join(format!("run-{team}.lock"));
    let cannot = |error: &dyn std::fmt::Display| ErrorReport::from_io("lock", &path, error);
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = file.map_err(|error| cannot(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(RunLock { lock, path }),
        Err(TryLockError::WouldBlock) => {
            let message = format!("cannot run team {team}: another teamctl run does so already");
            Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help(format!("see it with: teamctl status -t {team}")))
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
        let mut first = acquire(&state, &t).unwrap();
        assert!(acquire(&state, &t).is_err_and(|error| error.kind == ErrorKind::AlreadyExists));
        assert!(acquire(&state, &u).is_ok());
        assert_eq!(first.previous_note(), RunNote::KeepTeam);
        for note in [RunNote::DeleteTeam, RunNote::Deleting(0), RunNote::Deleting(75), RunNote::KeepTeam] {
            first.write_note(note).unwrap();
            drop(first);
            first = acquire(&state, &t).unwrap();
            assert_eq!(first.previous_note(), note);
        }
    }
}
