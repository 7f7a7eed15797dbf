//! The lock that allows one merge of a team at a time, and the note in the lock file: which process
//! merges, into which branch, and in which worktree.
//!
//! The kernel releases the lock when the process ends. If the merge is killed, its worktree and the
//! note remain. The next merge, `teamctl delete` or `teamctl doctor --fix` finds the worktree by
//! the note and removes it.

use super::worktree_error_report::to_report;
use crate::commands::open_lock_file::open_lock_file;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use store::{Flock, StateDir, try_lock_exclusive_despite_readers};
use worktree::{GitEnvironment, MergeWorktreeRecord};

/// The content of the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MergeNote {
    pid: u32,
    branch: String,
    /// The worktree that is to be removed. `None` if there is none.
    worktree: Option<MergeWorktreeRecord>,
}

/// The lock of a team's merge. Dropping it releases the lock.
pub(super) struct MergeLock {
    lock: Flock,
    path: PathBuf,
    note: MergeNote,
}

impl MergeLock {
    /// Takes the lock, and notes that this process merges into `branch`.
    ///
    /// # Errors
    ///
    /// `Timeout` if another process holds the lock. The error names the process and its branch.
    pub(super) fn acquire(state: &StateDir, team: &TeamName, branch: &str) -> Result<MergeLock, ErrorReport> {
        let path = lock_path(state.path(), team);
        let file = open_lock_file(&path).map_err(|error| ErrorReport::from_io("open", &path, &error))?;
        let lock = try_lock_exclusive_despite_readers(file).map_err(|error| match error {
            TryLockError::WouldBlock => busy_error(&path, team),
            TryLockError::Error(error) => ErrorReport::from_io("lock", &path, &error),
        })?;
        let worktree = read_note(lock.file()).and_then(|note| note.worktree);
        let note = MergeNote { pid: std::process::id(), branch: branch.to_owned(), worktree };
        let mut lock = MergeLock { lock, path, note };
        lock.write_note()?;
        Ok(lock)
    }

    /// Notes a worktree before git fills it.
    pub(super) fn record_worktree(&mut self, record: &MergeWorktreeRecord) -> Result<(), ErrorReport> {
        self.note.worktree = Some(record.clone());
        self.write_note()
    }

    /// Removes the noted worktree, if there is one, and then the note about it.
    pub(super) fn remove_worktree(&mut self, environment: &GitEnvironment) -> Result<(), ErrorReport> {
        let Some(record) = &self.note.worktree else { return Ok(()) };
        record.remove(environment).map_err(|error| to_report(&error))?;
        self.note.worktree = None;
        self.write_note()
    }

    fn write_note(&mut self) -> Result<(), ErrorReport> {
        let text = serde_json::to_vec(&self.note).expect("a note has text keys and UTF-8 paths");
        self.write(&text)
    }

    /// Writes the text over the old content, and then cuts the file to the new length. If the
    /// process is killed in between, the end of a longer old note remains; [`read_note`] ignores
    /// it.
    fn write(&mut self, text: &[u8]) -> Result<(), ErrorReport> {
        let mut file = self.lock.file();
        let result = file.rewind().and_then(|()| file.write_all(text));
        result
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(|error| ErrorReport::from_io("write", &self.path, &error))
    }
}

fn lock_path(state: &Path, team: &TeamName) -> PathBuf {
    state.join(state_file_names::merge_lock(team))
}

/// The worktrees that killed merges have left, with the teams. `state` is the state directory.
pub(crate) fn worktrees_of_killed_merges(state: &Path) -> Vec<(TeamName, PathBuf)> {
    let names = state.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    let team = |name: OsString| state_file_names::team_of_merge_lock(name.to_str()?);
    let with_worktree = |team: TeamName| Some((team.clone(), worktree_of_killed_merge(state, &team)?));
    names.filter_map(team).filter_map(with_worktree).collect()
}

/// Returns the path of the worktree that a killed merge of the team has left. `None` if there is no
/// such worktree, or if a merge of the team is running. `state` is the state directory.
fn worktree_of_killed_merge(state: &Path, team: &TeamName) -> Option<PathBuf> {
    let file = File::open(lock_path(state, team)).ok()?;
    // A merge that runs holds the exclusive lock.
    file.try_lock_shared().ok()?;
    Some(read_note(&file)?.worktree?.path)
}

/// Removes the worktree that a killed merge of the team has left, if there is one.
///
/// # Errors
///
/// `Timeout` if a merge of the team is running. Otherwise the errors of git commands.
pub(crate) fn remove_worktree_of_killed_merge(state: &StateDir, team: &TeamName) -> Result<(), ErrorReport> {
    if worktree_of_killed_merge(state.path(), team).is_none() {
        return Ok(());
    }
    let mut lock = MergeLock::acquire(state, team, "")?;
    lock.remove_worktree(&GitEnvironment::from_process())
}

/// The first JSON value in the file. `None` if the file is empty or cannot be read.
fn read_note(mut file: &File) -> Option<MergeNote> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).ok()?;
    serde_json::Deserializer::from_slice(&text).into_iter().next()?.ok()
}

fn busy_error(path: &Path, team: &TeamName) -> ErrorReport {
    let note = File::open(path).ok().and_then(|file| read_note(&file));
    let holder = note.map_or_else(
        || "another teamctl merge does so already".to_owned(),
        |note| format!("process {} does so already, into {}", note.pid, note.branch),
    );
    ErrorReport::new(ErrorKind::Timeout, format!("cannot merge the branches of {team}: {holder}"))
        .with_help("wait until it has ended, and type the same command again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_merge_names_the_first_and_takes_over_its_worktree() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(&directory.path().join("state")).unwrap();
        let team = TeamName::parse("t").unwrap();
        let path = directory.path().join("missing");
        let record = MergeWorktreeRecord { path, common_git_dir: "/r/.git".into(), inode: 1 };
        let mut first = MergeLock::acquire(&state, &team, "a-branch-with-a-long-name").unwrap();
        first.record_worktree(&record).unwrap();
        let error = MergeLock::acquire(&state, &team, "b").err().unwrap();
        let expected = format!("process {} does so already, into a-branch-with", std::process::id());
        assert!(error.kind == ErrorKind::Timeout && error.message.contains(&expected), "{error}");
        drop(first);
        let second = MergeLock::acquire(&state, &team, "b").unwrap();
        assert_eq!(second.note.worktree.as_ref(), Some(&record));
        assert_eq!(worktree_of_killed_merge(state.path(), &team), None, "the merge runs");
        drop(second);
        assert_eq!(worktree_of_killed_merge(state.path(), &team), Some(record.path.clone()));
        let expected = [(team.clone(), record.path.clone())];
        assert_eq!(worktrees_of_killed_merges(state.path()), expected);
        remove_worktree_of_killed_merge(&state, &team).unwrap();
        assert_eq!(worktree_of_killed_merge(state.path(), &team), None);
        assert_eq!(MergeLock::acquire(&state, &team, "c").unwrap().note.worktree, None);
    }
}
