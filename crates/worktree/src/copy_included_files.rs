//! Copies files that git ignores, such as `.env`, from the main worktree of a repository into a new
//! worktree. The file `.worktreeinclude` at the top of the main worktree names them, in the syntax
//! of `.gitignore`. Other tools use this file in the same way.
//!
//! A file is copied if a pattern matches it and git ignores it in both worktrees. So a copy never
//! replaces a tracked file, and is never committed by `git add --all`.
//!
//! Invariant: nothing is read or written through a symbolic link; a link is copied as a link. The
//! test `links_out_of_the_repository_are_not_followed` checks this.

use crate::error::{Error, io_error};
use crate::git_command::{Git, READ_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::git_output::{path_from_bytes, split_nul};
use crate::repository_and_its_worktrees::list_worktrees;
use crate::worktree_record::WorktreeRecord;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The file with the patterns.
const INCLUDE_FILE: &str = ".worktreeinclude";

/// How many files are copied at most, and how many bytes.
const MAX_FILES: usize = 100_000;
const MAX_BYTES: u64 = 4 << 30;

impl WorktreeRecord {
    /// Copies the files that `.worktreeinclude` names. Replaces no file that already exists in the
    /// worktree.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyIncludedFiles`], and then nothing is copied; [`Error::Io`]; the errors of
    /// git commands.
    pub fn copy_included_files(&self, environment: &GitEnvironment) -> Result<(), Error> {
        let Some(main) = list_worktrees(&self.common_git_dir, environment)?.into_iter().next() else {
            return Ok(());
        };
        let include_file = main.path.join(INCLUDE_FILE);
        if main.path == self.path || !include_file.symlink_metadata().is_ok_and(|file| file.is_file()) {
            return Ok(());
        }
        let files = included_files(&Git::in_directory(&main.path, environment), &include_file)?;
        // git refuses to check a file behind a link.
        let files: Vec<PathBuf> =
            files.into_iter().filter(|file| !has_link_as_parent(&self.path, file)).collect();
        let files = ignored_files(&self.git(environment), &files)?;
        let copier = FileCopier { from: &main.path, to: &self.path };
        let files = copier.existing_files(files)?;
        check_limits(&files)?;
        files.iter().try_for_each(|(file, metadata)| copier.copy(file, metadata))
    }
}

/// The files of the main worktree that git ignores and that a pattern matches. `git` runs there.
fn included_files(git: &Git<'_>, include_file: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut patterns = std::ffi::OsString::from("--exclude-from=");
    patterns.push(include_file);
    let options = ["ls-files", "-z", "--others", "--ignored"].map(std::ffi::OsString::from);
    let matching = git.output_of("list the files to copy", &[&options[..], &[patterns]].concat())?;
    let files: Vec<PathBuf> = split_nul(&matching).map(path_from_bytes).collect();
    ignored_files(git, &files)
}

/// Those of the files that git ignores.
fn ignored_files(git: &Git<'_>, files: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    use std::os::unix::ffi::OsStrExt;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&[u8]> = files.iter().map(|file| file.as_os_str().as_bytes()).collect();
    let (action, arguments) = ("find ignored files", ["check-ignore", "-z", "--stdin"]);
    let output = git.run(action, &arguments, &names.join(&0), READ_TIMEOUT)?;
    Ok(split_nul(&output.stdout_if_code_0_or_1(action)?).map(path_from_bytes).collect())
}

/// Whether a directory above `file`, up to `root`, is a symbolic link.
fn has_link_as_parent(root: &Path, file: &Path) -> bool {
    let is_link =
        |path: &Path| root.join(path).symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    file.ancestors().skip(1).take_while(|path| !path.as_os_str().is_empty()).any(is_link)
}

fn check_limits(files: &[(PathBuf, Metadata)]) -> Result<(), Error> {
    let bytes = files.iter().map(|(_, metadata)| metadata.len()).sum::<u64>();
    if files.len() <= MAX_FILES && bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::TooManyIncludedFiles { files: files.len(), bytes })
}

/// Copies files to the same paths below another directory.
struct FileCopier<'a> {
    from: &'a Path,
    to: &'a Path,
}

impl FileCopier<'_> {
    /// The regular files and links among `files`, with their metadata.
    fn existing_files(&self, files: Vec<PathBuf>) -> Result<Vec<(PathBuf, Metadata)>, Error> {
        let mut existing = Vec::new();
        for file in files {
            let path = self.from.join(&file);
            match path.symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(io_error("check", &path)(error)),
                Ok(metadata) if metadata.is_file() || metadata.is_symlink() => {
                    existing.push((file, metadata));
                }
                Ok(_) => {}
            }
        }
        Ok(existing)
    }

    /// Copies a file with its permissions, or copies a symbolic link. Does nothing if something
    /// already exists at the target path, or if a directory above the file is a symbolic link.
    fn copy(&self, file: &Path, metadata: &Metadata) -> Result<(), Error> {
        let (from, to) = (self.from.join(file), self.to.join(file));
        if !self.create_parents(file)? || to.symlink_metadata().is_ok() {
            return Ok(());
        }
        failpoint::hit_before_call("worktree.include").map_err(io_error("copy", &from))?;
        let copied = if metadata.is_symlink() {
            std::fs::read_link(&from).and_then(|target| std::os::unix::fs::symlink(target, &to))
        } else {
            copy_file(&from, &to)
        };
        copied.map_err(io_error("copy", &from))
    }

    /// Creates the directories above a file in the new worktree. Each directory gets the
    /// permissions that it has in the main worktree; its owner may always write to it. Returns
    /// false if, in one of the two worktrees, a path above the file is something other than a
    /// directory, such as a symbolic link.
    fn create_parents(&self, file: &Path) -> Result<bool, Error> {
        let mut directory = PathBuf::new();
        for component in file.parent().unwrap_or(Path::new("")).components() {
            let Component::Normal(name) = component else { return Ok(false) };
            directory.push(name);
            let (from, to) = (self.from.join(&directory), self.to.join(&directory));
            let source = from.symlink_metadata().map_err(io_error("check", &from))?;
            if !source.is_dir() {
                return Ok(false);
            }
            match std::fs::create_dir(&to) {
                Ok(()) => {
                    let permissions = Permissions::from_mode(source.permissions().mode() & 0o777 | 0o300);
                    std::fs::set_permissions(&to, permissions).map_err(io_error("create", &to))?;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if !to.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(io_error("create", &to)(error)),
            }
        }
        Ok(true)
    }
}

/// Copies a file. If the copy is interrupted, no file `to` exists, so the next preparation of the
/// worktree copies the file again. On Linux, the two files share their blocks if the file system
/// can do that.
#[allow(clippy::disallowed_methods, reason = "these are files of the repository, and not of a root")]
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let no_follow = OFlags::NOFOLLOW.bits() as i32;
    let mut source = File::options().read(true).custom_flags(no_follow).open(from)?;
    let copy = temporary_copy(to);
    // The branch may have a file or a link of this name. An exclusive creation fails then.
    let mut target = File::options().write(true).create_new(true).mode(0o600).open(&copy)?;
    let permissions = source.metadata()?.permissions();
    let copied = io::copy(&mut source, &mut target).and_then(|_| target.set_permissions(permissions));
    let copied = copied.and_then(|()| std::fs::rename(&copy, to));
    copied.inspect_err(|_| drop(std::fs::remove_file(&copy)))
}

/// The path of the copy while it is written.
pub(crate) fn temporary_copy(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".teamd-copy-{}", std::process::id()));
    to.with_file_name(name)
}
