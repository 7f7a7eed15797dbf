//! The lock that allows only one run of a team at a time. Two runs would release each other's
//! tasks.
//!
//! The kernel releases the lock when the process exits. The lock file stays. It contains a note for
//! a later run with `--resume`: whether the run deletes its team, and its exit code once the
//! deletion has begun.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use store::StateDir;

/// The text of the note [`RunNote::DeleteTeam`].
const DELETE_TEAM_LINE: &str = "delete_team\n";
/// The start of the text of the note [`RunNote::Deleting`]. The exit code follows.
const DELETING_PREFIX: &str = "deleting exit_code=";

/// What a run stores in the lock file for a later run of the same team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunNote {
    /// The run does not delete its team. This is also the note if there was no run, or if the last
    /// run has done everything.
    KeepTeam,
    /// The run will delete its team at its end.
    DeleteTeam,
    /// The run ends with this exit code. Only the deletion of the team is still to be done.
    Deleting(u8),
}

impl RunNote {
    /// Parses the first line of the lock file, which is the note of the last run. If that run was
    /// killed while it wrote, the rest of an older, longer note may follow.
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

/// The lock of a team's run. Dropping it releases the lock.
pub(crate) struct RunLock {
    lock: File,
    path: PathBuf,
}

impl RunLock {
    /// The note of the last run.
    pub(crate) fn previous_note(&mut self) -> RunNote {
        let mut text = String::new();
        let read = self.lock.rewind().and_then(|()| self.lock.read_to_string(&mut text));
        read.map_or(RunNote::KeepTeam, |_| RunNote::parse(&text))
    }

    /// Writes the note of this run.
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
        // A child process that was just forked also has the descriptor. So the lock would not be
        // released by closing the file in this process.
        self.lock.unlock().ok();
    }
}

/// Takes the lock that a run of this team needs.
///
/// # Errors
///
/// `AlreadyExists` if another run of the team holds the lock.
pub(crate) fn acquire(state: &StateDir, team: &TeamName) -> Result<RunLock, ErrorReport> {
    let path = state.path().join(format!("run-{team}.lock"));
    let lock_error = |error: &dyn std::fmt::Display| ErrorReport::from_io("lock", &path, error);
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = file.map_err(|error| lock_error(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(RunLock { lock, path }),
        Err(TryLockError::WouldBlock) => {
            let message = format!("cannot run team {team}: another teamctl run does so already");
            Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help(format!("see it with: teamctl status -t {team}")))
        }
        Err(TryLockError::Error(error)) => Err(lock_error(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_run_of_a_team_is_allowed_and_notes_are_kept() {
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
