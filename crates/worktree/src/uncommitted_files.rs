//! Files of a working tree whose content is in no commit. `git status` reports most of these files;
//! the others are files that git was told not to check.

use crate::error::Error;
use crate::find_submodules;
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use crate::git_output::{path_from_bytes, split_nul};
use crate::ignored_cache_directories::CacheDirs;
use std::path::{Path, PathBuf};

/// Files whose content is in no commit. Paths are relative to the top of the working tree.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FileStatus {
    /// Files that are changed in the index.
    pub(crate) staged: Vec<PathBuf>,
    /// Files that are changed in the working tree, compared to the index.
    pub(crate) unstaged: Vec<PathBuf>,
    /// Files with merge conflicts.
    pub(crate) unmerged: Vec<PathBuf>,
    /// Files that are not in the index. If a submodule is not checked out but its directory has
    /// files, the directory is in this list too.
    pub(crate) untracked: Vec<PathBuf>,
    /// Files that `.gitignore` ignores, without cache directories ([`CacheDirs`]).
    pub(crate) ignored: Vec<PathBuf>,
    /// Git repositories in cache directories. Their commits may be nowhere else.
    pub(crate) cached_repositories: Vec<PathBuf>,
    /// Files that git does not check for changes: assume-unchanged or skip-worktree.
    pub(crate) ignored_by_status: Vec<PathBuf>,
}

/// Whether the worktree at `worktree` has staged, changed, unmerged or untracked files. Ignored
/// files do not count. False if the directory does not exist.
///
/// # Errors
///
/// [`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`], [`Error::Timeout`], [`Error::Io`].
pub fn has_uncommitted_files(worktree: &Path, environment: &GitEnvironment) -> Result<bool, Error> {
    if !worktree.join(".git").exists() {
        return Ok(false);
    }
    let status = FileStatus::read(worktree, &Git::in_directory(worktree, environment))?;
    let file_lists = [&status.staged, &status.unstaged, &status.unmerged, &status.untracked];
    Ok(file_lists.iter().any(|files| !files.is_empty()))
}

impl FileStatus {
    /// Finds the files of the working tree at `working_tree` whose content is in no commit. `git`
    /// must run in this working tree.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn read(working_tree: &Path, git: &Git<'_>) -> Result<FileStatus, Error> {
        let arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignored=matching",
            // Changed files in submodules are not listed here. `unsaved_submodules` checks each
            // submodule.
            "--ignore-submodules=dirty",
        ];
        let status_git = git.without_named_programs()?;
        let mut status = FileStatus::default();
        let mut cache_dirs = CacheDirs::new(working_tree);
        for entry in split_nul(&status_git.output_of("check the worktree", &arguments)?) {
            status.add_entry(entry, &mut cache_dirs);
        }
        status.cached_repositories = cache_dirs.repositories_in_recorded();
        status.untracked.extend(submodule_dirs_with_files(working_tree, git)?);
        status.ignored_by_status = ignored_by_status(working_tree, git)?;
        Ok(status)
    }

    /// Whether there are no files whose content is in no commit.
    pub(crate) fn is_clean(&self) -> bool {
        *self == FileStatus::default()
    }

    /// Returns the files of all lists. A file that is in two lists occurs twice.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let file_lists =
            [&self.unstaged, &self.unmerged, &self.untracked, &self.ignored, &self.ignored_by_status];
        file_lists.into_iter().chain([&self.staged, &self.cached_repositories]).flatten()
    }

    /// Adds an entry of the output of `git status`. The entry has the form `XY PATH`: X is the
    /// file's state in the index, and Y is its state in the working tree.
    fn add_entry(&mut self, entry: &[u8], cache_dirs: &mut CacheDirs) {
        let (Some(code), Some(name)) = (entry.get(..2), entry.get(3..)) else { return };
        let file = path_from_bytes(name);
        match code {
            b"??" => self.untracked.push(file),
            b"!!" if cache_dirs.record_if_cached(&file) => {}
            b"!!" => self.ignored.push(file),
            b"DD" | b"AA" => self.unmerged.push(file),
            [b'U', _] | [_, b'U'] => self.unmerged.push(file),
            [index_state, tree_state] => {
                if *index_state != b' ' {
                    self.staged.push(file.clone());
                }
                if *tree_state != b' ' {
                    self.unstaged.push(file);
                }
            }
            _ => {}
        }
    }
}

/// Returns the directories of submodules that are not checked out but have files. `git status` does
/// not report these files.
fn submodule_dirs_with_files(working_tree: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let links = find_submodules::gitlinks(git)?.into_iter();
    let has_files = |directory: &Path| directory.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    Ok(links
        .filter(|link| !working_tree.join(link).join(".git").exists() && has_files(&working_tree.join(link)))
        .collect())
}

/// Returns the existing files that git was told not to check for changes (assume-unchanged or
/// skip-worktree). Missing files do not count: a sparse checkout also sets skip-worktree, for each
/// file that it does not check out.
fn ignored_by_status(working_tree: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let output = git.output_of("list the files", &["ls-files", "-v", "-z"])?;
    let marked_entries = split_nul(&output).filter(|entry| entry[0] == b'S' || entry[0].is_ascii_lowercase());
    let files = marked_entries.filter_map(|entry| entry.get(2..)).map(path_from_bytes);
    Ok(files.filter(|file| working_tree.join(file).symlink_metadata().is_ok()).collect())
}
