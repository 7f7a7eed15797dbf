//! Into the trash: everything of a worktree that no commit of a branch has, before it is removed by force. Commits as
//! a bundle, what is staged and what is not as patches, and every file that differs as it was; with the words for
//! having it back. Complete and looked at once more, or an error, and then nothing may be removed.

use crate::archive::{create_new_file, write_archive};
use crate::error::{Error, io_error};
use crate::fingerprint::{RepositoryFingerprint, WorktreeFingerprint};
use crate::git_command::{Git, GitEnvironment};
use crate::local_commits;
use crate::record::WorktreeRecord;
use crate::restore_instructions::SavedPart;
use crate::stash;
use crate::submodule;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, create_dir_all};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names for what is to be saved, in a part of the references that belongs to the worktree alone and goes with it.
pub(crate) const SAVED_REFS: &str = "refs/worktree/teamd/";

/// What was saved, and where.
#[derive(Debug, Clone)]
pub struct SavedWorktree {
    /// The directory.
    pub directory: PathBuf,
    /// How it is had back, for people.
    pub restore_instructions: String,
    /// What it was like: it is removed as long as that is so.
    pub(crate) fingerprint: WorktreeFingerprint,
}

impl WorktreeRecord {
    /// Saves all of it in `directory`, which must not be there and is made, 0700. What an error leaves there says that
    /// it is not complete.
    ///
    /// # Errors
    /// Where anything could not be saved; [`Error::Changed`] where it was written to meanwhile.
    pub fn save(&self, directory: &Path, surroundings: &GitEnvironment) -> Result<SavedWorktree, Error> {
        let private = self.private_git_dir()?;
        create_private_dir(directory)?;
        self.save_parts(&private, directory, surroundings).inspect_err(|error| {
            let words = format!("Not complete, and nothing was removed for it: {error}.\n");
            write_new_file(&directory.join("README"), words.as_bytes()).ok();
        })
    }

    fn save_parts(
        &self,
        private: &Path,
        directory: &Path,
        surroundings: &GitEnvironment,
    ) -> Result<SavedWorktree, Error> {
        let marks = WorktreeFingerprint::read(&self.path, surroundings)?;
        let mut parts = Vec::new();
        // The empty path is the first of them.
        for (at, mark) in &marks.0 {
            parts.push(match at.as_os_str().is_empty() {
                true => self.save_main_tree(mark, private, directory, surroundings)?,
                false => {
                    let into = directory.join("submodules").join((parts.len() - 1).to_string());
                    self.save_submodule(at, mark, private, into, surroundings)?
                }
            });
        }
        save_other_repositories(&self.path, private, surroundings, &directory.join("submodules"))?;
        let heads = &marks.0[Path::new("")].heads;
        let restore = self.restore_readme(heads, &parts);
        if WorktreeFingerprint::read(&self.path, surroundings)? != marks {
            return Err(Error::ChangedWhileSaving(self.path.clone()));
        }
        write_new_file(&directory.join("README"), restore.as_bytes())?;
        sync_recursively(directory)?;
        Ok(SavedWorktree {
            directory: directory.to_owned(),
            restore_instructions: restore,
            fingerprint: marks,
        })
    }

    fn save_main_tree(
        &self,
        mark: &RepositoryFingerprint,
        private: &Path,
        directory: &Path,
        surroundings: &GitEnvironment,
    ) -> Result<SavedPart, Error> {
        let (git, heads) = (self.git(surroundings), &mark.heads);
        let mut names = vec![("head".to_owned(), heads.head.clone())];
        let own = heads.own_branches(self);
        names.extend(own.iter().enumerate().map(|(n, own)| (format!("branch-{n}"), branch_tip(&git, own))));
        names.extend(numbered_refs("stash", stash::stashes_of_worktree(self, &git, heads)?));
        names.extend(numbered_refs("abandoned", local_commits::reflog_only_commits(self, &git, heads)?));
        create_refs(&git, names)?;
        let mut has = Vec::new();
        has.extend(write_bundle(&git, directory, Some(&self.base_commit))?);
        has.extend(save_changes(&self.path, &git, mark, private, directory)?);
        let modules = |name: &Path| name == Path::new("modules");
        write_archive(private, &[PathBuf::new()], &directory.join("git.tar"), &modules)?;
        Ok(SavedPart {
            path: PathBuf::new(),
            directory: directory.to_owned(),
            head: heads.head.clone(),
            files: has,
        })
    }

    /// As a whole: its remote may not have it.
    fn save_submodule(
        &self,
        at: &Path,
        mark: &RepositoryFingerprint,
        private: &Path,
        directory: PathBuf,
        surroundings: &GitEnvironment,
    ) -> Result<SavedPart, Error> {
        let place = self.path.join(at);
        let (git, head) = (Git::in_directory(&place, surroundings), mark.heads.head.clone());
        create_private_dir(&directory)?;
        ref_head_and_logs(&git, head.clone())?;
        let mut has = Vec::new();
        has.extend(write_bundle(&git, &directory, None)?);
        has.extend(save_changes(&place, &git, mark, private, &directory)?);
        Ok(SavedPart { path: at.to_owned(), directory, head, files: has })
    }
}

/// Those that are not checked out now, with all that they remember.
fn save_other_repositories(
    tree: &Path,
    private: &Path,
    surroundings: &GitEnvironment,
    into: &Path,
) -> Result<(), Error> {
    for (n, at) in submodule::not_checked_out(tree, private, surroundings)?.iter().enumerate() {
        let (git, directory) = (Git::with_git_dir(at, surroundings), into.join(format!("repository-{n}")));
        create_private_dir(&directory)?;
        ref_head_and_logs(&git, None)?;
        write_bundle(&git, &directory, None)?;
        let words = format!("The repository {}: in a clone of it\n", at.display());
        let fetch = "git fetch commits.bundle '+refs/*:refs/restored/*'\n";
        write_new_file(&directory.join("README"), (words + fetch).as_bytes())?;
    }
    Ok(())
}

/// Its HEAD, and what only its logs hold: stashes are in one of them.
fn ref_head_and_logs(git: &Git<'_>, head: Option<String>) -> Result<(), Error> {
    let mut names = vec![("head".to_owned(), head)];
    names.extend(numbered_refs("log", local_commits::reflog_only_in_repository(git)?));
    create_refs(git, names)
}

fn branch_tip(git: &Git<'_>, branch: &str) -> Option<String> {
    git.output_text(
        "look at a branch",
        &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")],
    )
    .ok()
}

fn numbered_refs(what: &str, commits: Vec<String>) -> Vec<(String, Option<String>)> {
    commits.into_iter().enumerate().map(|(n, commit)| (format!("{what}-{n}"), Some(commit))).collect()
}

fn create_refs(git: &Git<'_>, names: Vec<(String, Option<String>)>) -> Result<(), Error> {
    let present = names.into_iter().filter_map(|(name, commit)| Some((name, commit?)));
    let orders: String =
        present.map(|(name, commit)| format!("update {SAVED_REFS}{name} {commit}\n")).collect();
    let verb = "name what is to be saved";
    git.run(verb, &["update-ref", "--stdin"], orders.as_bytes(), crate::git_command::READ_TIMEOUT)?
        .stdout_or_error(verb)
        .map(drop)
}

/// All named commits beyond `base`, or all that there are; none where there are none.
fn write_bundle(git: &Git<'_>, into: &Path, base: Option<&str>) -> Result<Option<&'static str>, Error> {
    let (part, file) = ("commits.bundle", into.join("commits.bundle"));
    let what = if base.is_some() { vec![format!("--glob={SAVED_REFS}*")] } else { vec!["--all".to_owned()] };
    let not = base.map(|base| ["--not".to_owned(), base.to_owned()]);
    let what: Vec<String> = what.into_iter().chain(not.into_iter().flatten()).collect();
    let verb = "save the commits";
    let count = ["rev-list".to_owned(), "--count".to_owned()].into_iter().chain(what.clone());
    if git.output_number(verb, &count.collect::<Vec<_>>(), b"")? == 0 {
        return Ok(None);
    }
    let mut arguments: Vec<OsString> = ["bundle", "create", "--quiet"].map(OsString::from).into();
    arguments.push(file.clone().into());
    arguments.extend(what.into_iter().map(OsString::from));
    git.run(verb, &arguments, b"", crate::git_command::WRITE_TIMEOUT)?.stdout_or_error(verb)?;
    let verify = [OsStr::new("bundle"), OsStr::new("verify"), OsStr::new("--quiet"), file.as_os_str()];
    git.output_of("verify the saved commits", &verify)?;
    Ok(Some(part))
}

/// What is staged, what is not, and all files that differ, as they are. Where a submodule is at is its own part's.
fn save_changes(
    tree: &Path,
    git: &Git<'_>,
    mark: &RepositoryFingerprint,
    private: &Path,
    into: &Path,
) -> Result<Vec<&'static str>, Error> {
    let patches = [
        ("staged.patch", ["--cached", "--ignore-submodules=dirty"].as_slice()),
        ("unstaged.patch", ["--ignore-submodules=all"].as_slice()),
    ];
    let mut has = Vec::new();
    for (part, which) in patches {
        has.extend(write_patch(git, which, mark, &into.join(part))?.then_some(part));
    }
    // What leads into the worktree's own repositories leads nowhere without them; they are saved apart.
    let leads_there =
        |name: &Path| name.ends_with(".git") && submodule::points_into(&tree.join(name), private);
    has.extend(
        write_archive(tree, &mark.files, &into.join("files.tar"), &leads_there)?.then_some("files.tar"),
    );
    Ok(has)
}

/// As any git applies it, whatever is configured here. A conflict has no patch: its file is saved whole.
fn write_patch(
    git: &Git<'_>,
    which: &[&str],
    mark: &RepositoryFingerprint,
    file: &Path,
) -> Result<bool, Error> {
    let fixed = ["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"];
    let spelled = ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"];
    let submodules = ["--submodule=short"];
    let words = fixed.iter().chain(&spelled).chain(&submodules).chain(which).chain(&["--", ":/"]);
    let mut arguments: Vec<OsString> = words.map(OsString::from).collect();
    arguments.extend(mark.status.unmerged.iter().map(|file| {
        let mut but = OsString::from(":(top,exclude,literal)");
        but.push(file);
        but
    }));
    let made = create_new_file(file)?;
    git.run_to_file("save the changes", &arguments, &made)?;
    if made.metadata().map_err(io_error("look at", file))?.len() == 0 {
        std::fs::remove_file(file).map_err(io_error("remove", file))?;
        return Ok(false);
    }
    let readable = [OsStr::new("apply"), OsStr::new("--numstat"), OsStr::new("--"), file.as_os_str()];
    git.output_of("verify the saved changes", &readable)?;
    Ok(true)
}

fn create_private_dir(directory: &Path) -> Result<(), Error> {
    if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
        create_dir_all(parent).map_err(io_error("make", parent))?;
    }
    DirBuilder::new().mode(0o700).create(directory).map_err(io_error("make", directory))
}

fn write_new_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    create_new_file(path)?.write_all(bytes).map_err(io_error("write", path))
}

/// On the disk, since what it was made from goes now.
fn sync_recursively(directory: &Path) -> Result<(), Error> {
    for entry in directory.read_dir().map_err(io_error("look into", directory))? {
        let path = entry.map_err(io_error("look into", directory))?.path();
        if path.is_dir() {
            sync_recursively(&path)?;
        } else {
            File::open(&path).and_then(|file| file.sync_all()).map_err(io_error("write", &path))?;
        }
    }
    File::open(directory).and_then(|file| file.sync_all()).map_err(io_error("write", directory))
}
