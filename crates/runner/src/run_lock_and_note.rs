//! The lock file of a team's runs. A run locks this file, so that only one run of the team is in
//! progress at a time. Without the lock, one run could make a task pending while a member of
//! another run works on it.
//!
//! The file has two lines. The first line is a note for a later run with `--resume`. The note says
//! whether the run keeps or deletes its team at its end. When the run begins to delete the team, it
//! replaces the note with its exit code. The second line is the path of the run file.
//!
//! The kernel releases the lock when the run's process exits, but the file stays. A run that
//! completes its work removes both lines. So a second line in an unlocked file shows that a run was
//! killed. `teamctl status` and `teamctl why` report this ([`interrupted_run`]).

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names;
use protocol::team_and_member_names::TeamName;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use store::{Flock, StateDir, Team, try_lock_exclusive_despite_readers};

/// The start of the line with the path of the run file.
const FILE_PREFIX: &[u8] = b"file=";
/// The text of the note [`RunNote::DeleteTeam`].
const DELETE_TEAM_LINE: &str = "delete_team\n";
/// The start of the text of the note [`RunNote::Deleting`]. The exit code follows.
const DELETING_PREFIX: &str = "deleting exit_code=";

/// What a run stores in the lock file for a later run of the same team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunNote {
    /// The run keeps its team at its end. An empty lock file also has this meaning: there is no
    /// deletion that a later run must complete.
    KeepTeam,
    /// The run will delete its team at its end.
    DeleteTeam,
    /// The run ends with this exit code. Only the deletion of the team is still to be done.
    Deleting(u8),
}

impl RunNote {
    /// Parses the note of the last run, which is the first line of the lock file. Other lines are
    /// ignored. If a run was killed while it wrote the file, parts of an older text may follow.
    fn parse(text: &str) -> RunNote {
        let line = text.split_inclusive('\n').next().unwrap_or_default();
        let exit_code =
            line.strip_prefix(DELETING_PREFIX).and_then(|exit_code| exit_code.trim_end().parse().ok());
        match exit_code {
            Some(exit_code) => RunNote::Deleting(exit_code),
            None if line == DELETE_TEAM_LINE => RunNote::DeleteTeam,
            None => RunNote::KeepTeam,
        }
    }

    fn text(self) -> String {
        match self {
            RunNote::KeepTeam => String::new(),
            RunNote::DeleteTeam => DELETE_TEAM_LINE.to_owned(),
            RunNote::Deleting(exit_code) => format!("{DELETING_PREFIX}{exit_code}\n"),
        }
    }
}

/// The lock of a team's run. Dropping it releases the lock.
pub(crate) struct RunLock {
    lock: Flock,
    path: PathBuf,
}

impl RunLock {
    /// The note of the last run.
    pub(crate) fn previous_note(&mut self) -> RunNote {
        let mut bytes = Vec::new();
        let mut file = self.lock.file();
        let result = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        result.map_or(RunNote::KeepTeam, |_| RunNote::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Writes the note of this run, and the path of its run file.
    pub(crate) fn write_note(&mut self, note: RunNote, run_file: &Path) -> Result<(), ErrorReport> {
        let text = if note == RunNote::KeepTeam { "\n".to_owned() } else { note.text() };
        self.write(&[text.as_bytes(), FILE_PREFIX, run_file.as_os_str().as_bytes(), b"\n"].concat())
    }

    /// Records that the run has done everything.
    pub(crate) fn clear_note(&mut self) -> Result<(), ErrorReport> {
        self.write(b"")
    }

    fn write(&mut self, text: &[u8]) -> Result<(), ErrorReport> {
        let mut file = self.lock.file();
        let result = file.rewind().and_then(|()| file.write_all(text));
        result
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(|error| ErrorReport::from_io("write", &self.path, &error))
    }
}

/// Takes the lock that a run of this team needs.
///
/// # Errors
///
/// `AlreadyExists` if another run of the team holds the lock.
pub(crate) fn acquire(state: &StateDir, team: &TeamName) -> Result<RunLock, ErrorReport> {
    let path = lock_path(state.path(), team);
    let lock_error = |error: &dyn std::fmt::Display| ErrorReport::from_io("lock", &path, error);
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    // A process that calls `interrupted_run` holds a shared lock on this file for a moment, to test
    // whether a run holds the lock. So this function tries for up to two seconds before it fails.
    match try_lock_exclusive_despite_readers(file.map_err(|error| lock_error(&error))?) {
        Ok(lock) => Ok(RunLock { lock, path }),
        Err(TryLockError::WouldBlock) => {
            let message = format!("cannot run team {team}: another teamctl run does so already");
            Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help(format!("see it with: teamctl status -t {team}")))
        }
        Err(TryLockError::Error(error)) => Err(lock_error(&error)),
    }
}

fn lock_path(state: &Path, team: &TeamName) -> PathBuf {
    state.join(state_file_names::run_lock(team))
}

/// A `teamctl run` that was killed before it finished. Its team still exists, but no run drives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterruptedRun {
    /// The absolute path of the run file.
    pub file: PathBuf,
    /// Whether the run was to keep its team at its end (`--keep-team`).
    pub keeps_team: bool,
}

/// The last run of `team`, if it was killed and no run has continued it. `None` if there is no such
/// run, or if the lock file cannot be read. `state` is teamd's state directory.
pub fn interrupted_run(state: &Path, team: &Team) -> Option<InterruptedRun> {
    let mut file = File::open(lock_path(state, team.name())).ok()?;
    let run = run_of_note(&mut file)?;
    // The run still holds its lock if a shared lock is refused.
    file.try_lock_shared().ok()?;
    file.unlock().ok();
    is_as_new_as(&file, team)?.then_some(run)
}

/// Whether the note in the lock file is of this team. The note of an earlier team of the same name
/// is older than the team. `None` if a file cannot be read.
fn is_as_new_as(lock: &File, team: &Team) -> Option<bool> {
    let written_at = lock.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(written_at.as_millis() >= u128::from(team.config().ok()?.created_at))
}

/// The path of the run file, if a run of `team` is in progress or was killed. `None` if there is no
/// such run. `state` is teamd's state directory.
pub fn run_file_of_team(state: &Path, team: &Team) -> Option<PathBuf> {
    let mut file = File::open(lock_path(state, team.name())).ok()?;
    run_of_note(&mut file).filter(|_| is_as_new_as(&file, team) == Some(true)).map(|run| run.file)
}

/// The run that has written the note. `None` if this run has completed its work.
fn run_of_note(lock: &mut File) -> Option<InterruptedRun> {
    let mut text = Vec::new();
    lock.read_to_end(&mut text).ok()?;
    let path = text.split(|byte| *byte == b'\n').nth(1)?.strip_prefix(FILE_PREFIX)?;
    let file = PathBuf::from(OsString::from_vec(path.to_vec()));
    Some(InterruptedRun {
        file,
        keeps_team: RunNote::parse(&String::from_utf8_lossy(&text)) == RunNote::KeepTeam,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::TeamConfig;
    use store::{Durability, Root};

    #[test]
    fn only_one_run_of_a_team_is_allowed_and_notes_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let [t, u] = ["t", "u"].map(|name| TeamName::parse(name).unwrap());
        let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
        let created_at = |at: u64| format!(r#"{{"name":"t","createdAt":{at},"members":[]}}"#);
        let team = root.create_team(&TeamConfig::parse(&created_at(0)).unwrap()).unwrap();
        let mut first = acquire(&state, &t).unwrap();
        assert!(acquire(&state, &t).is_err_and(|error| error.kind == ErrorKind::AlreadyExists));
        assert!(acquire(&state, &u).is_ok());
        assert_eq!(first.previous_note(), RunNote::KeepTeam);
        for note in [RunNote::DeleteTeam, RunNote::Deleting(0), RunNote::Deleting(75), RunNote::KeepTeam] {
            first.write_note(note, Path::new("/team.toml")).unwrap();
            assert_eq!(interrupted_run(state.path(), &team), None, "the run holds its lock");
            drop(first);
            let interrupted =
                InterruptedRun { file: "/team.toml".into(), keeps_team: note == RunNote::KeepTeam };
            assert_eq!(interrupted_run(state.path(), &team), Some(interrupted));
            first = acquire(&state, &t).unwrap();
            assert_eq!(first.previous_note(), note);
        }
        first.clear_note().unwrap();
        assert_eq!(first.previous_note(), RunNote::KeepTeam);
        drop(first);
        assert_eq!(interrupted_run(state.path(), &team), None, "the run has done everything");
        let mut second = acquire(&state, &u).unwrap();
        second.write_note(RunNote::KeepTeam, Path::new("/team.toml")).unwrap();
        drop(second);
        let later = created_at(store::now() + 60_000).replace("\"t\"", "\"u\"");
        let run_file = Some(PathBuf::from("/team.toml"));
        let older_team =
            root.create_team(&TeamConfig::parse(&created_at(0).replace("\"t\"", "\"u\"")).unwrap());
        assert_eq!(run_file_of_team(state.path(), &older_team.unwrap()), run_file);
        root.team(&u).unwrap().delete().unwrap();
        let newer_team = root.create_team(&TeamConfig::parse(&later).unwrap()).unwrap();
        assert_eq!(interrupted_run(state.path(), &newer_team), None, "the note is older than the team");
        assert_eq!(run_file_of_team(state.path(), &newer_team), None, "its hosts are those of another team");
    }
}
