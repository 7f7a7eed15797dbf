//! Saves all work of a worktree that is in no branch, before the worktree is removed by force.
//!
//! Commits are saved as a bundle, staged and unstaged changes as patches. Every changed file is
//! also copied as a whole. A README has the commands that restore the worktree.
//!
//! Invariant: a [`SavedWorktree`] is complete. If anything can't be saved, or if the worktree
//! changes meanwhile, saving fails and the worktree is not removed. The tests
//! `worktree_that_cannot_be_saved_is_kept` and `writes_after_saving_prevent_removal` check this.

use crate::error::{Error, io_error};
use crate::git_command::{Git, WRITE_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::branch_tip;
use crate::mount_points::check_no_mount_point;
use crate::restore_instructions::SavedPart;
use crate::tar_archive::{create_new_file, write_archive};
use crate::temporary_refs_for_git_bundle::{SAVED_REFS, SavedRefs};
use crate::worktree_fingerprint::{RepositoryFingerprint, WorktreeFingerprint};
use crate::worktree_handle::Worktree;
use crate::worktree_record::WorktreeRecord;
use crate::{count_commits_lost_with_worktree, find_submodules, stashes_of_worktree};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A worktree whose unsaved work was saved. [`WorktreeRecord::discard`] may remove it.
#[derive(Debug, Clone)]
pub struct SavedWorktree {
    /// The directory that the work is saved in.
    pub directory: PathBuf,
    /// The text of the README, with the commands that restore the worktree.
    pub restore_instructions: String,
    /// The state that was saved. The worktree is removed only while it is in this state.
    pub(crate) fingerprint: WorktreeFingerprint,
}

impl SavedWorktree {
    /// Notes that the present state of the worktree is the saved one. The worktree is removed only
    /// if its state has not changed after that. The caller uses this method after a teardown
    /// command, whose changes to files must not prevent the removal.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeRecord::state`] and of git commands.
    pub fn accept_current_state(
        &mut self,
        record: &WorktreeRecord,
        environment: &GitEnvironment,
    ) -> Result<(), Error> {
        self.fingerprint = WorktreeFingerprint::read(&record.open(environment)?)?;
        Ok(())
    }
}

impl WorktreeRecord {
    /// Saves the worktree in `directory`, which must not exist and is created with mode 0700. After
    /// an error, the README in `directory` says that the saved work is not complete.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`]; [`Error::MountPoint`]; [`Error::ChangedWhileSaving`] if the worktree
    /// was written to while it was saved. If anything can't be saved, [`Error::Io`] or the error of
    /// a git command.
    pub fn save(&self, directory: &Path, environment: &GitEnvironment) -> Result<SavedWorktree, Error> {
        let worktree = self.open(environment)?;
        // A worktree in which a file system is mounted cannot be removed, so there is no reason to
        // save it.
        check_no_mount_point(&self.path)?;
        create_private_dir(directory)?;
        worktree.save_parts(directory).inspect_err(|error| {
            let text = format!("Not complete: {error}. The worktree was not removed.\n");
            write_new_file(&directory.join("README"), text.as_bytes()).ok();
        })
    }
}

impl Worktree<'_> {
    /// Saves the worktree and all submodules, and writes the README.
    fn save_parts(&self, directory: &Path) -> Result<SavedWorktree, Error> {
        let fingerprint = WorktreeFingerprint::read(self)?;
        let submodules_dir = directory.join("submodules");
        let mut parts = Vec::new();
        // `fingerprint` is sorted by path. The worktree itself has the empty path, so it is saved
        // first, and its submodules after it.
        for (path, fingerprint) in &fingerprint.0 {
            parts.push(match path.as_os_str().is_empty() {
                true => self.save_main_tree(fingerprint, directory)?,
                false => {
                    let into = submodules_dir.join((parts.len() - 1).to_string());
                    self.save_submodule(path, fingerprint, &into)?
                }
            });
        }
        self.save_unused_repositories(&submodules_dir)?;
        let head_state = &fingerprint.0[Path::new("")].head_state;
        let restore_instructions = self.record.restore_readme(head_state, &parts, directory);
        if WorktreeFingerprint::read(self)? != fingerprint {
            return Err(Error::ChangedWhileSaving(self.path().to_owned()));
        }
        write_new_file(&directory.join("README"), restore_instructions.as_bytes())?;
        sync_recursively(directory)?;
        Ok(SavedWorktree { directory: directory.to_owned(), restore_instructions, fingerprint })
    }

    /// Saves the worktree itself and its private git directory, without submodules.
    fn save_main_tree(
        &self,
        fingerprint: &RepositoryFingerprint,
        directory: &Path,
    ) -> Result<SavedPart, Error> {
        let (git, record, head_state) = (self.git(), self.record, &fingerprint.head_state);
        let mut refs = SavedRefs::default();
        refs.add("head", head_state.head.clone());
        for (n, branch) in head_state.own_branches(record).iter().enumerate() {
            refs.add(&format!("branch-{n}"), branch_tip(&git, branch)?);
        }
        refs.add_numbered("stash", stashes_of_worktree::stashes_of_worktree(record, &git, head_state)?);
        refs.add_numbered(
            "reflog",
            count_commits_lost_with_worktree::reflog_only_commits(record, &git, head_state)?,
        );
        refs.create(&git)?;
        let part = self.save_part(Path::new(""), fingerprint, directory, Some(&record.base_commit))?;
        let is_modules = |name: &Path| name == Path::new("modules");
        write_archive(&self.git_dir, &[PathBuf::new()], &directory.join("git-dir.tar"), &is_modules)?;
        Ok(part)
    }

    /// Saves a submodule with all of its commits, because its remote may not have them.
    fn save_submodule(
        &self,
        path: &Path,
        fingerprint: &RepositoryFingerprint,
        directory: &Path,
    ) -> Result<SavedPart, Error> {
        create_private_dir(directory)?;
        ref_head_and_logs(&self.git_in(path), fingerprint.head_state.head.clone())?;
        self.save_part(path, fingerprint, directory, None)
    }

    /// Saves the commits and the changes of the working tree `path`. With `base`, only commits that
    /// `base` does not have are saved. Without `base`, all commits of the repository are saved.
    fn save_part(
        &self,
        path: &Path,
        fingerprint: &RepositoryFingerprint,
        directory: &Path,
        base: Option<&str>,
    ) -> Result<SavedPart, Error> {
        let mut files: Vec<_> = write_bundle(&self.git_in(path), directory, base)?.into_iter().collect();
        files.extend(self.save_changes(path, fingerprint, directory)?);
        let head = fingerprint.head_state.head.clone();
        Ok(SavedPart { path: path.to_owned(), directory: directory.to_owned(), head, files })
    }

    /// Saves the repositories of submodules that are not checked out, with all of their commits.
    fn save_unused_repositories(&self, into: &Path) -> Result<(), Error> {
        for (n, repository) in self.unused_repositories()?.iter().enumerate() {
            let git = Git::with_git_dir(repository, self.environment);
            let directory = into.join(format!("not-checked-out-{n}"));
            create_private_dir(&directory)?;
            ref_head_and_logs(&git, None)?;
            write_bundle(&git, &directory, None)?;
            let text = format!(
                "The repository {}. To restore its commits, run in a clone of it:\n\
                 git fetch commits.bundle '+refs/*:refs/restored/*'\n",
                repository.display()
            );
            write_new_file(&directory.join("README"), text.as_bytes())?;
        }
        Ok(())
    }

    /// Saves staged changes, unstaged changes, and a copy of every changed file of the working tree
    /// `path`. Returns the names of the files that were written.
    ///
    /// The patch of unstaged changes leaves out submodules, because each submodule is saved
    /// separately.
    fn save_changes(
        &self,
        path: &Path,
        fingerprint: &RepositoryFingerprint,
        into: &Path,
    ) -> Result<Vec<&'static str>, Error> {
        let (git, working_tree) = (self.git_in(path), self.path().join(path));
        let patches = [
            ("staged.patch", ["--cached", "--ignore-submodules=dirty"].as_slice()),
            ("unstaged.patch", ["--ignore-submodules=all"].as_slice()),
        ];
        let mut files = Vec::new();
        for (name, options) in patches {
            files.extend(write_patch(&git, options, fingerprint, &into.join(name))?.then_some(name));
        }
        // A submodule has a file `.git` with the path of the submodule's repository. If the
        // repository is in the worktree's git directory, it is saved separately and will be
        // restored at another path. So the file `.git` is left out of the archive.
        let is_own_repository = |name: &Path| {
            name.ends_with(".git") && find_submodules::points_into(&working_tree.join(name), &self.git_dir)
        };
        let archive = into.join("changed-files.tar");
        let has_files = write_archive(&working_tree, &fingerprint.files, &archive, &is_own_repository)?;
        files.extend(has_files.then_some("changed-files.tar"));
        Ok(files)
    }
}

/// Creates references to HEAD and to the commits that only reflogs have, such as stashes, so that
/// the bundle contains these commits.
fn ref_head_and_logs(git: &Git<'_>, head: Option<String>) -> Result<(), Error> {
    let mut refs = SavedRefs::default();
    refs.add("head", head);
    refs.add_numbered("reflog", count_commits_lost_with_worktree::reflog_only_in_repository(git)?);
    refs.create(git)
}

/// Writes `commits.bundle` and verifies it. With `base`, the bundle has the commits that are
/// reachable from references below [`SAVED_REFS`], but not from `base`. Without `base`, the bundle
/// has all commits of the repository.
///
/// Returns the name of the file, or `None` if there are no commits to save.
fn write_bundle(git: &Git<'_>, into: &Path, base: Option<&str>) -> Result<Option<&'static str>, Error> {
    let (name, file) = ("commits.bundle", into.join("commits.bundle"));
    let refs = if base.is_some() { vec![format!("--glob={SAVED_REFS}*")] } else { vec!["--all".to_owned()] };
    let excluded = base.map(|base| ["--not".to_owned(), base.to_owned()]);
    let revisions: Vec<String> = refs.into_iter().chain(excluded.into_iter().flatten()).collect();
    let action = "save the commits";
    let count = ["rev-list".to_owned(), "--count".to_owned()].into_iter().chain(revisions.clone());
    if git.output_number(action, &count.collect::<Vec<_>>(), b"")? == 0 {
        return Ok(None);
    }
    let mut arguments: Vec<OsString> = ["bundle", "create", "--quiet"].map(OsString::from).into();
    arguments.push(file.clone().into());
    arguments.extend(revisions.into_iter().map(OsString::from));
    git.run(action, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(action)?;
    let verify = [OsStr::new("bundle"), OsStr::new("verify"), OsStr::new("--quiet"), file.as_os_str()];
    git.output_of("verify the saved commits", &verify)?;
    Ok(Some(name))
}

/// Writes the patch `file` and verifies it. Returns false, and writes no file, if there are no
/// changes.
///
/// The git options make the patch independent of the user's configuration, so that any git can
/// apply it. Files with merge conflicts are not in the patch. `save_changes` copies them as a
/// whole.
fn write_patch(
    git: &Git<'_>,
    options: &[&str],
    fingerprint: &RepositoryFingerprint,
    file: &Path,
) -> Result<bool, Error> {
    let format = ["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"];
    let paths_and_context = ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"];
    let submodules = ["--submodule=short"];
    let fixed_arguments =
        format.iter().chain(&paths_and_context).chain(&submodules).chain(options).chain(&["--", ":/"]);
    let mut arguments: Vec<OsString> = fixed_arguments.map(OsString::from).collect();
    arguments.extend(fingerprint.status.unmerged.iter().map(|file| {
        let mut exclude = OsString::from(":(top,exclude,literal)");
        exclude.push(file);
        exclude
    }));
    let patch = create_new_file(file)?;
    git.without_named_programs()?.run_to_file("save the changes", &arguments, &patch)?;
    if patch.metadata().map_err(io_error("check", file))?.len() == 0 {
        std::fs::remove_file(file).map_err(io_error("remove", file))?;
        return Ok(false);
    }
    let verify = [OsStr::new("apply"), OsStr::new("--numstat"), OsStr::new("--"), file.as_os_str()];
    git.output_of("verify the saved changes", &verify)?;
    Ok(true)
}

/// Creates a directory and its missing parents, all with mode 0700. The directory must not exist.
fn create_private_dir(directory: &Path) -> Result<(), Error> {
    if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        created.map_err(io_error("create", parent))?;
    }
    DirBuilder::new().mode(0o700).create(directory).map_err(io_error("create", directory))
}

/// Writes a file that must not exist yet.
fn write_new_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    create_new_file(path)?.write_all(bytes).map_err(io_error("write", path))
}

/// Flushes all files below `directory` to the disk, because the worktree is removed next.
fn sync_recursively(directory: &Path) -> Result<(), Error> {
    for entry in directory.read_dir().map_err(io_error("list", directory))? {
        let path = entry.map_err(io_error("list", directory))?.path();
        if path.is_dir() {
            sync_recursively(&path)?;
        } else {
            File::open(&path).and_then(|file| file.sync_all()).map_err(io_error("write", &path))?;
        }
    }
    File::open(directory).and_then(|file| file.sync_all()).map_err(io_error("write", directory))
}
