//! Fingerprints of a worktree and its submodules. A fingerprint is read before and after an action.
//! If both are equal, the unsaved work has not changed meanwhile.
//!
//! Invariant: every write to a file changes the fingerprint, even if all names and sizes stay the
//! same. The test `writes_after_saving_prevent_removal` checks this.

use crate::error::{Error, io_error};
use crate::find_submodules;
use crate::git_command::Git;
use crate::head_and_reflog_of_worktree::HeadState;
use crate::tar_archive::walk;
use crate::uncommitted_files::FileStatus;
use crate::worktree_handle::Worktree;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The fingerprints of a worktree and of each submodule that is checked out in it. The key is the
/// submodule's path relative to the worktree. The key of the worktree itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorktreeFingerprint(pub(crate) BTreeMap<PathBuf, RepositoryFingerprint>);

/// The fingerprint of one working tree, without its submodules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepositoryFingerprint {
    pub(crate) status: FileStatus,
    pub(crate) head_state: HeadState,
    /// The files of `status` without submodules, sorted.
    pub(crate) files: Vec<PathBuf>,
    /// The stamps of `files` and of everything below them.
    stamps: BTreeMap<PathBuf, FileStamp>,
    /// The stamp of the index. `None` if there is no index.
    index: Option<FileStamp>,
}

/// What is recorded of a file, so that a later change of it is noticed. A write always sets `ctime`
/// to the current time, and no program can set `ctime` back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    mode: u32,
    size: u64,
    /// Seconds since 1970, and nanoseconds.
    ctime: (i64, i64),
}

impl WorktreeFingerprint {
    /// Reads the fingerprints of the worktree and its submodules.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn read(worktree: &Worktree<'_>) -> Result<WorktreeFingerprint, Error> {
        let mut working_trees = vec![PathBuf::new()];
        working_trees.extend(worktree.checked_out_submodules()?);
        let fingerprint = |path: PathBuf| {
            let fingerprint =
                RepositoryFingerprint::read(&worktree.path().join(&path), &worktree.git_in(&path))?;
            Ok((path, fingerprint))
        };
        working_trees.into_iter().map(fingerprint).collect::<Result<_, _>>().map(WorktreeFingerprint)
    }
}

impl RepositoryFingerprint {
    /// Reads the fingerprint of the working tree `directory`, in which `git` runs.
    fn read(directory: &Path, git: &Git<'_>) -> Result<RepositoryFingerprint, Error> {
        let (status, head_state) = (FileStatus::read(directory, git)?, HeadState::read(git)?);
        let submodules = find_submodules::direct_checked_out(directory, git)?;
        let mut files: Vec<PathBuf> =
            status.files().filter(|file| !submodules.contains(file)).cloned().collect();
        files.sort();
        files.dedup();
        let walked_files = walk(directory, &files, &|_| false)?.into_iter();
        let stamps = walked_files.map(|file| (file.name, FileStamp::from_metadata(&file.metadata))).collect();
        let git_dir = git.output_line("find the index", &["rev-parse", "--absolute-git-dir"])?;
        let index = FileStamp::of_path(&Path::new(&git_dir).join("index"))?;
        Ok(RepositoryFingerprint { status, head_state, files, stamps, index })
    }
}

impl FileStamp {
    pub(crate) fn from_metadata(metadata: &Metadata) -> FileStamp {
        let ctime = (metadata.ctime(), metadata.ctime_nsec());
        FileStamp { inode: metadata.ino(), mode: metadata.mode(), size: metadata.size(), ctime }
    }

    /// Reads the stamp of a file. `None` if the file does not exist.
    fn of_path(path: &Path) -> Result<Option<FileStamp>, Error> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            metadata => {
                let metadata = metadata.map_err(io_error("check", path))?;
                Ok(Some(FileStamp::from_metadata(&metadata)))
            }
        }
    }
}

/// Writes the numbers with colons between them, without spaces.
impl Display for FileStamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FileStamp { inode, mode, size, ctime: (seconds, nanoseconds) } = self;
        write!(f, "{inode}:{mode}:{size}:{seconds}:{nanoseconds}")
    }
}

impl FromStr for FileStamp {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<FileStamp, Self::Err> {
        let mut numbers = text.split(':');
        let mut next = || numbers.next().unwrap_or_default();
        let (inode, mode, size) = (next().parse()?, next().parse()?, next().parse()?);
        Ok(FileStamp { inode, mode, size, ctime: (next().parse()?, next().parse()?) })
    }
}
