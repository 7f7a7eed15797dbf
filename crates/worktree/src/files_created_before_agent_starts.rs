//! Ignored files that exist in a worktree before its agent starts: copies of files that
//! `.worktreeinclude` names, and files that a setup command has made. As long as such a file stays
//! unchanged, it is not unsaved work.
//!
//! When the worktree is ready for its agent, teamd writes a note into the worktree's private git
//! directory. The note records size, inode, mode and change time of each of these files. git
//! removes it together with the worktree. A worktree without a note is not ready, for example
//! because the daemon was killed while it prepared the worktree.

use crate::error::{Error, io_error};
use crate::git_environment::GitEnvironment;
use crate::git_output::{os_string, split_nul};
use crate::tar_archive::walk;
use crate::uncommitted_files::FileStatus;
use crate::worktree_fingerprint::FileStamp;
use crate::worktree_record::WorktreeRecord;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of the note.
const NOTE: &str = "teamd-created-files";

/// The stamps of the files, by paths relative to the worktree.
type Stamps = BTreeMap<PathBuf, FileStamp>;

impl WorktreeRecord {
    /// Whether the worktree is ready for its agent. A worktree is ready if its git directory has a
    /// note, which [`WorktreeRecord::note_created_files`] or
    /// [`WorktreeRecord::note_no_created_files`] has written.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeRecord::state`].
    pub fn is_ready_for_agent(&self) -> Result<bool, Error> {
        Ok(self.private_git_dir()?.join(NOTE).exists())
    }

    /// Notes that the worktree is ready, and records the ignored files that it has now. As long as
    /// they stay unchanged, they do not count as unsaved work. A file that cannot be read is not
    /// recorded, so it counts as unsaved work.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`], [`Error::Io`]; the errors of git commands.
    pub fn note_created_files(&self, environment: &GitEnvironment) -> Result<(), Error> {
        let status = FileStatus::read(&self.path, &self.git(environment))?;
        let read = |file| read_stamps(&self.path, std::slice::from_ref(file)).unwrap_or_default();
        let stamps: Stamps = status.ignored.iter().flat_map(read).collect();
        let mut text = Vec::new();
        for (path, stamp) in stamps {
            text.extend_from_slice(format!("{stamp} ").as_bytes());
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(0);
        }
        self.write_note(&text)
    }

    /// Notes that the worktree is ready, without a record of its ignored files. So all of them
    /// count as unsaved work.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`], [`Error::Io`].
    pub fn note_no_created_files(&self) -> Result<(), Error> {
        self.write_note(b"")
    }

    fn write_note(&self, text: &[u8]) -> Result<(), Error> {
        let path = self.private_git_dir()?.join(NOTE);
        // A note that is cut off has fewer files, so more of them count as unsaved work.
        File::create(&path).and_then(|mut file| file.write_all(text)).map_err(io_error("write", &path))
    }
}

/// Removes from `files`, a list of ignored files, those that existed before the agent started and
/// have not changed since. `git_dir` is the private git directory of the worktree.
pub(crate) fn remove_unchanged(
    files: &mut Vec<PathBuf>,
    worktree: &Path,
    git_dir: &Path,
) -> Result<(), Error> {
    let Ok(note) = std::fs::read(git_dir.join(NOTE)) else { return Ok(()) };
    let noted: Stamps = split_nul(&note).filter_map(parse_entry).collect();
    let mut result = Ok(());
    files.retain(|file| match read_stamps(worktree, std::slice::from_ref(file)) {
        Ok(stamps) => !stamps.iter().all(|(path, stamp)| noted.get(path) == Some(stamp)),
        Err(error) => {
            result = Err(error);
            true
        }
    });
    result
}

fn read_stamps(worktree: &Path, files: &[PathBuf]) -> Result<Stamps, Error> {
    let walked = walk(worktree, files, &|_| false)?.into_iter();
    Ok(walked.map(|file| (file.name, FileStamp::from_metadata(&file.metadata))).collect())
}

/// Parses `STAMP PATH`.
fn parse_entry(entry: &[u8]) -> Option<(PathBuf, FileStamp)> {
    let mut parts = entry.splitn(2, |byte| *byte == b' ');
    let stamp = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    Some((PathBuf::from(os_string(parts.next()?)), stamp))
}
