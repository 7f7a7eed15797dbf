//! Plans a worktree, before git changes anything. The plan names an earlier worktree that is used
//! again, or the branch and the directory of a new worktree. This module creates the new directory
//! and leaves it empty.
//!
//! The caller stores a record of the worktree before it lets git fill the directory. So even after
//! a crash, there is a record of each directory with files.

use crate::error::{Error, io_error};
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::{
    branch_exists, branch_ref, check_branch_name, check_not_blocked, worktree_on_branch,
};
use crate::repository_and_its_worktrees::Repository;
use crate::worktree_record::{WorktreeRecord, WorktreeState};
use rustix::process::geteuid;
use std::fs::{DirBuilder, read_to_string, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The permission bits with which a group and all users can write.
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The permissions of new directories, before the umask is applied.
const DIRECTORY_MODE: u32 = 0o755;

/// How many numbered names are tried for a branch and for a directory.
const MAX_NAME_ATTEMPTS: u32 = 1_000;

/// The worktree that the caller wants.
#[derive(Debug, Clone)]
pub struct WorktreeOptions {
    /// A directory in the repository, absolute.
    pub cwd: PathBuf,
    /// Name of the worktree's directory. If the name is taken, a number is appended: `-2`, `-3` and
    /// so on.
    pub name: String,
    /// The branch to check out. If this branch does not exist, it is created. `None` stands for a
    /// new branch, which is named after `default_branch`.
    pub branch: Option<String>,
    /// Name of the new branch if `branch` is `None`. If a branch of this name exists, a number is
    /// appended: `-2`, `-3` and so on.
    pub default_branch: String,
    /// Earlier worktrees of the same member. One of them is used again if it is suitable.
    pub previous: Vec<WorktreeRecord>,
}

/// A planned worktree, or an earlier one that is used again.
#[derive(Debug, Clone)]
pub struct WorktreeProposal {
    /// The record of the worktree. The caller must store it before it calls
    /// [`WorktreeProposal::add`].
    pub record: WorktreeRecord,
    /// Whether this is an earlier worktree, which exists already.
    pub exists: bool,
    /// Path of `cwd`, relative to the top of the working tree.
    pub subdirectory: PathBuf,
    /// The directory in [`WorktreeOptions::cwd`].
    pub cwd: PathBuf,
}

/// Plans a worktree and creates its directory.
///
/// If the caller does not continue, only an empty directory is left behind. If an earlier worktree
/// can be used again, nothing is created.
///
/// # Errors
///
/// [`Error::NoRepository`], [`Error::NoCommit`], [`Error::InvalidBranch`], [`Error::BranchTaken`],
/// [`Error::BranchBlocked`], [`Error::PathNotUtf8`], [`Error::UntrustedDirectory`]; the errors of
/// git commands ([`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`], [`Error::Timeout`],
/// [`Error::Io`]).
pub fn propose_worktree(
    options: &WorktreeOptions,
    environment: &GitEnvironment,
) -> Result<WorktreeProposal, Error> {
    let repository = Repository::read(&options.cwd, environment)?;
    let reusable = options.previous.iter().find(|record| can_reuse(record, options, &repository));
    if let Some(record) = reusable {
        let (record, cwd) = (record.clone(), options.cwd.clone());
        return Ok(WorktreeProposal { record, exists: true, subdirectory: repository.subdirectory, cwd });
    }
    let branches = BranchChooser { git: Git::in_directory(&options.cwd, environment) };
    let branch = branches.choose(options)?;
    let base_commit = branches.base_commit(&branch, &options.cwd)?;
    let path = create_directory(&repository.worktrees_dir, &options.name)?;
    for path in [&path, &repository.common_git_dir] {
        path.to_str().ok_or_else(|| Error::PathNotUtf8(path.clone()))?;
    }
    let inode = symlink_metadata(&path).map_err(io_error("check", &path))?.ino();
    let record = WorktreeRecord {
        path,
        branch: branch.name,
        branch_created: branch.is_new,
        common_git_dir: repository.common_git_dir,
        base_commit,
        inode,
    };
    Ok(WorktreeProposal {
        record,
        exists: false,
        subdirectory: repository.subdirectory,
        cwd: options.cwd.clone(),
    })
}

/// Whether an earlier worktree can be used again for `options`. It must belong to the repository
/// and the branch that the options ask for, and this branch must be checked out. A detached HEAD is
/// accepted too, because HEAD is detached during a rebase.
fn can_reuse(record: &WorktreeRecord, options: &WorktreeOptions, repository: &Repository) -> bool {
    let has_wanted_branch = match &options.branch {
        Some(branch) => record.branch == *branch,
        None => is_branch_of_series(&record.branch, &options.default_branch),
    };
    let Ok(WorktreeState::Present(git_dir)) = record.state() else { return false };
    let is_detached = || read_to_string(git_dir.join("HEAD")).is_ok_and(|head| !head.starts_with("ref: "));
    has_wanted_branch
        && record.common_git_dir == repository.common_git_dir
        && (record.is_on_its_branch() || is_detached())
}

/// Whether `branch` is `default_branch`, or that name with a number appended.
fn is_branch_of_series(branch: &str, default_branch: &str) -> bool {
    let suffix = branch.strip_prefix(default_branch);
    suffix.is_some_and(|suffix| {
        suffix.is_empty() || suffix.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok())
    })
}

/// The branch for a worktree.
struct ChosenBranch {
    name: String,
    /// Whether the branch must be created.
    is_new: bool,
}

/// Chooses the branch for a worktree.
struct BranchChooser<'a> {
    git: Git<'a>,
}

impl BranchChooser<'_> {
    /// Returns the branch that the options name. If they name none, returns a new branch:
    /// `default_branch`, or the first `default_branch-N` that does not exist yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidBranch`], [`Error::BranchTaken`], [`Error::BranchBlocked`]; the errors of
    /// [`Git::output_of`].
    fn choose(&self, options: &WorktreeOptions) -> Result<ChosenBranch, Error> {
        let Some(branch) = &options.branch else {
            let name = self.free_branch(&options.default_branch)?;
            check_not_blocked(&self.git, &name)?;
            return Ok(ChosenBranch { name, is_new: true });
        };
        check_branch_name(&self.git, branch)?;
        if !branch_exists(&self.git, branch)? {
            check_not_blocked(&self.git, branch)?;
            return Ok(ChosenBranch { name: branch.clone(), is_new: true });
        }
        match worktree_on_branch(&self.git, branch)? {
            None => Ok(ChosenBranch { name: branch.clone(), is_new: false }),
            Some(worktree) => Err(Error::BranchTaken { branch: branch.clone(), worktree }),
        }
    }

    /// Returns the first numbered name that is not the name of a branch.
    fn free_branch(&self, default_branch: &str) -> Result<String, Error> {
        for branch in numbered_names(default_branch) {
            if !branch_exists(&self.git, &branch)? {
                return Ok(branch);
            }
        }
        Err(Error::InvalidBranch(default_branch.to_owned()))
    }

    /// Returns the commit to check out. For a new branch this is the commit of HEAD, otherwise the
    /// commit of the branch.
    ///
    /// # Errors
    ///
    /// [`Error::NoCommit`]; the errors of [`Git::output_of`].
    fn base_commit(&self, branch: &ChosenBranch, cwd: &Path) -> Result<String, Error> {
        let start = if branch.is_new { "HEAD".to_owned() } else { branch_ref(&branch.name) };
        let arguments = ["rev-parse", "--verify", "--quiet", &format!("{start}^{{commit}}")];
        self.git.output_text("find the commit to check out", &arguments).map_err(|error| match error {
            Error::Git { .. } => Error::NoCommit(cwd.to_owned()),
            error => error,
        })
    }
}

/// Returns `NAME`, `NAME-2`, `NAME-3` and so on.
fn numbered_names(name: &str) -> impl Iterator<Item = String> {
    (1..=MAX_NAME_ATTEMPTS).map(move |n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") })
}

/// Checks that `directory` belongs to this user and that no other user can create or replace files
/// in it. Otherwise another user could replace the worktrees in which agents run.
///
/// # Errors
///
/// [`Error::UntrustedDirectory`]; [`Error::Io`].
fn check_own_directory(directory: &Path) -> Result<(), Error> {
    let metadata = symlink_metadata(directory).map_err(io_error("check", directory))?;
    let own_uid = geteuid().as_raw();
    let reason = match metadata.uid() {
        _ if metadata.is_symlink() => "it is a symbolic link".to_owned(),
        owner if owner != own_uid => format!("it belongs to the user {owner}, not to {own_uid}"),
        _ if metadata.mode() & OTHERS_WRITE != 0 => "other users can write there".to_owned(),
        _ if metadata.mode() & GROUP_WRITE != 0 => "its group can write there".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::UntrustedDirectory { path: directory.to_owned(), reason })
}

/// Creates a new directory `name` in `parent`. If the name is taken, the first free name of
/// `NAME-2`, `NAME-3` and so on is used. Creating a directory that exists is an error, so two
/// callers never get the same directory.
pub(crate) fn create_directory(parent: &Path, name: &str) -> Result<PathBuf, Error> {
    let create_parents = || DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(parent);
    create_parents().map_err(io_error("create", parent))?;
    check_own_directory(parent)?;
    let parent = parent.canonicalize().map_err(io_error("find", parent))?;
    for name in numbered_names(name) {
        let path = parent.join(name);
        failpoint::hit_before_call("worktree.mkdir").map_err(io_error("create", &path))?;
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
            Ok(()) => {
                failpoint::hit("worktree.made");
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("create", &path)(error)),
        }
    }
    Err(io_error("create", &parent.join(name))(std::io::Error::from(ErrorKind::AlreadyExists)))
}
