//! What of a tree is in no commit, file by file, as `git status` tells it, and what it does not tell.

use crate::cache_dirs::CacheDirs;
use crate::error::Error;
use crate::git_command::{Git, path_from_bytes, split_nul};
use crate::submodule;
use std::path::{Path, PathBuf};

/// The files that are in no commit; paths are relative to the tree.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FileStatus {
    pub(crate) staged: Vec<PathBuf>,
    pub(crate) unstaged: Vec<PathBuf>,
    pub(crate) unmerged: Vec<PathBuf>,
    pub(crate) untracked: Vec<PathBuf>,
    pub(crate) ignored: Vec<PathBuf>,
    pub(crate) ignored_by_status: Vec<PathBuf>,
}

impl FileStatus {
    pub(crate) fn read(tree: &Path, git: &Git<'_>) -> Result<FileStatus, Error> {
        let arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignored=matching",
            "--ignore-submodules=none",
        ];
        let mut status = FileStatus::default();
        let mut disposable = CacheDirs::new(tree);
        for entry in split_nul(&git.output_of("look at the worktree", &arguments)?) {
            status.add_entry(entry, &mut disposable);
        }
        status.untracked.extend(files_in_empty_submodules(tree, git)?);
        status.ignored_by_status = ignored_by_status(tree, git)?;
        Ok(status)
    }

    pub(crate) fn is_clean(&self) -> bool {
        *self == FileStatus::default()
    }

    /// Everything that lies in the tree and in no commit.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let all = [&self.unstaged, &self.unmerged, &self.untracked, &self.ignored, &self.ignored_by_status];
        all.into_iter().chain([&self.staged]).flatten()
    }

    /// `XY PATH`: X is the index, Y the tree.
    fn add_entry(&mut self, entry: &[u8], disposable: &mut CacheDirs) {
        let (Some(code), Some(name)) = (entry.get(..2), entry.get(3..)) else { return };
        let file = path_from_bytes(name);
        match code {
            b"??" => self.untracked.push(file),
            b"!!" if disposable.contains(&file) => {}
            b"!!" => self.ignored.push(file),
            b"DD" | b"AA" => self.unmerged.push(file),
            [b'U', _] | [_, b'U'] => self.unmerged.push(file),
            [index, tree] => {
                if *index != b' ' {
                    self.staged.push(file.clone());
                }
                if *tree != b' ' {
                    self.unstaged.push(file);
                }
            }
            _ => {}
        }
    }
}

/// Where a submodule goes that is not checked out, and something lies all the same: status does not look there.
fn files_in_empty_submodules(tree: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let links = submodule::gitlinks(git)?.into_iter();
    let has_files = |at: &Path| at.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    Ok(links.filter(|at| !tree.join(at).join(".git").exists() && has_files(&tree.join(at))).collect())
}

/// Files whose changes status does not tell, because it was told not to look: those that are there. A sparse
/// checkout marks files too, which are not.
fn ignored_by_status(tree: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let all = git.output_of("list the files", &["ls-files", "-v", "-z"])?;
    let marked = split_nul(&all).filter(|entry| entry[0] == b'S' || entry[0].is_ascii_lowercase());
    let files = marked.filter_map(|entry| entry.get(2..)).map(path_from_bytes);
    Ok(files.filter(|file| tree.join(file).symlink_metadata().is_ok()).collect())
}
