//! A worktree as it is recorded, and whether what lies at its path still is that one. No git on the way: files
//! alone, so that it can be asked wherever there is no time.

use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment};
use serde::{Deserialize, Serialize};
use std::fs::{read_dir, read_to_string, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A worktree of ours. Recorded when its directory is made, before git fills it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    /// Where it is: absolute, without links.
    pub path: PathBuf,
    /// The branch that was checked out in it.
    pub branch: String,
    /// The branch was made for it.
    #[serde(rename = "new_branch")]
    pub branch_created: bool,
    /// The directory that the repository's worktrees share, `REPO/.git`: absolute, without links.
    #[serde(rename = "repository")]
    pub common_git_dir: PathBuf,
    /// The commit that it began from.
    #[serde(rename = "base")]
    pub base_commit: String,
    /// Of its directory. Its device has no name that lasts: on btrfs, overlays and NFS it is another after a reboot.
    pub inode: u64,
}

/// What lies at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeState {
    /// Nothing.
    Missing,
    /// Our directory, which nobody has filled.
    Empty,
    /// The worktree that was recorded; git keeps what belongs to it alone in this directory.
    Present(PathBuf),
}

impl WorktreeRecord {
    /// Looks at it. Which branch it is on is another question: [`Tree::is_on_its_branch`].
    ///
    /// # Errors
    /// [`Error::NotOurs`] where something else is there; [`Error::Io`].
    pub fn state(&self) -> Result<WorktreeState, Error> {
        let found = match symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(WorktreeState::Missing),
            found => found.map_err(io_error("look at", &self.path))?,
        };
        if !found.is_dir() || found.ino() != self.inode {
            return Err(self.not_recorded("it is not the directory that was made for it"));
        }
        if self.path.canonicalize().map_err(io_error("look at", &self.path))? != self.path {
            return Err(self.not_recorded("a link leads there"));
        }
        let link = self.path.join(".git");
        match symlink_metadata(&link) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.state_without_git(),
            Err(error) => Err(io_error("look at", &link)(error)),
            Ok(found) if found.is_file() => self.check_links(&link).map(WorktreeState::Present),
            Ok(_) => Err(self.not_recorded("its .git is no file")),
        }
    }

    /// The same, where only the worktree itself will do.
    ///
    /// # Errors
    /// As [`Tree::look`]; [`Error::NotOurs`] too where nothing is there.
    pub(crate) fn private_git_dir(&self) -> Result<PathBuf, Error> {
        match self.state()? {
            WorktreeState::Present(private) => Ok(private),
            WorktreeState::Missing => Err(self.not_recorded("it is not there")),
            WorktreeState::Empty => Err(self.not_recorded("there is nothing in it")),
        }
    }

    /// Whether the branch that it was made for is checked out in it. A repository that keeps its references in
    /// tables does not tell this way, and then nothing speaks against it.
    pub fn is_on_its_branch(&self) -> bool {
        let head = self.private_git_dir().ok().and_then(|private| read_to_string(private.join("HEAD")).ok());
        let name = head.as_deref().and_then(|head| head.trim_end().strip_prefix("ref: refs/heads/"));
        name.is_some_and(|name| name == self.branch || name == ".invalid")
    }

    /// Git in it.
    pub(crate) fn git<'a>(&self, surroundings: &'a GitEnvironment) -> Git<'a> {
        Git::in_directory(&self.path, surroundings)
    }

    fn state_without_git(&self) -> Result<WorktreeState, Error> {
        let mut entries = read_dir(&self.path).map_err(io_error("look into", &self.path))?;
        if entries.next().is_none() {
            return Ok(WorktreeState::Empty);
        }
        Err(self.not_recorded("it is no worktree any more"))
    }

    /// Both must lead to each other: `.git` here, `gitdir` there.
    fn check_links(&self, link: &Path) -> Result<PathBuf, Error> {
        let there = read_git_link(link, "gitdir: ")?;
        let private =
            self.path.join(there).canonicalize().map_err(|_| self.not_recorded("its .git leads nowhere"))?;
        if private.parent() != Some(&self.common_git_dir.join("worktrees")) {
            return Err(self.not_recorded("it belongs to another repository"));
        }
        let back = private.join(read_git_link(&private.join("gitdir"), "")?);
        let same = |at: &Path| at.canonicalize().ok() == link.canonicalize().ok();
        if same(&back) { Ok(private) } else { Err(self.not_recorded("its repository knows it elsewhere")) }
    }

    pub(crate) fn not_recorded(&self, why: &'static str) -> Error {
        Error::NotRecorded { path: self.path.clone(), why }
    }
}

/// The path that a file of git's names.
pub(crate) fn read_git_link(file: &Path, before: &str) -> Result<PathBuf, Error> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = std::fs::read(file).map_err(io_error("read", file))?;
    let rest = bytes.strip_prefix(before.as_bytes()).unwrap_or_default();
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(rest)))
}
