//! What a worktree and the submodules in it were like when they were looked at: any write between two looks makes a
//! difference, also one that leaves every name and length as it was.

use crate::archive::walk;
use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment};
use crate::local_commits::HeadState;
use crate::status::FileStatus;
use crate::submodule;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The tree itself under the empty path, and each submodule that is checked out in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorktreeFingerprint(pub(crate) BTreeMap<PathBuf, RepositoryFingerprint>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepositoryFingerprint {
    pub(crate) status: FileStatus,
    pub(crate) heads: HeadState,
    /// What is in no commit, file by file, without the submodules.
    pub(crate) files: Vec<PathBuf>,
    stamps: BTreeMap<PathBuf, FileStamp>,
    index: Option<FileStamp>,
}

/// The time of a file's last change goes on with every write, and nobody can set it back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    mode: u32,
    size: u64,
    ctime: (i64, i64),
}

impl WorktreeFingerprint {
    pub(crate) fn read(tree: &Path, surroundings: &GitEnvironment) -> Result<WorktreeFingerprint, Error> {
        let mut places = vec![PathBuf::new()];
        places.extend(submodule::all_checked_out(tree, surroundings)?);
        let mark =
            |at: PathBuf| Ok((at.clone(), RepositoryFingerprint::read(&tree.join(&at), surroundings)?));
        places.into_iter().map(mark).collect::<Result<_, _>>().map(WorktreeFingerprint)
    }
}

impl RepositoryFingerprint {
    fn read(place: &Path, surroundings: &GitEnvironment) -> Result<RepositoryFingerprint, Error> {
        let git = Git::in_directory(place, surroundings);
        let (status, heads) = (FileStatus::read(place, &git)?, HeadState::read(&git)?);
        let inner = submodule::direct_checked_out(place, &git)?;
        let mut files: Vec<PathBuf> = status.files().filter(|file| !inner.contains(file)).cloned().collect();
        files.sort();
        files.dedup();
        let mut stamps = BTreeMap::new();
        for (name, found) in walk(place, &files, &|_| false)? {
            stamps.insert(name, FileStamp::from_metadata(&found));
        }
        let private = git.output_line("find the index", &["rev-parse", "--absolute-git-dir"])?;
        let index = FileStamp::of_path(&Path::new(&private).join("index"))?;
        Ok(RepositoryFingerprint { status, heads, files, stamps, index })
    }
}

impl FileStamp {
    fn from_metadata(found: &Metadata) -> FileStamp {
        let changed = (found.ctime(), found.ctime_nsec());
        FileStamp { inode: found.ino(), mode: found.mode(), size: found.size(), ctime: changed }
    }

    fn of_path(path: &Path) -> Result<Option<FileStamp>, Error> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            found => {
                found.map_err(io_error("look at", path)).map(|found| Some(FileStamp::from_metadata(&found)))
            }
        }
    }
}
