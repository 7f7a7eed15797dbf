//! What a worktree will be, decided before anything of git is changed: an old one that goes on, or an empty
//! directory with a branch to be. The caller writes it down, and only then has it filled.

use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment, READ_TIMEOUT};
use crate::record::{WorktreeRecord, WorktreeState};
use crate::repository::Repository;
use std::fs::{DirBuilder, create_dir, read_to_string, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many names are tried.
const MAX_NAME_ATTEMPTS: u32 = 1_000;

/// Who wants one, and where.
#[derive(Debug, Clone)]
pub struct WorktreeOptions {
    /// A directory in the repository, absolute.
    pub cwd: PathBuf,
    /// What its directory is called.
    pub name: String,
    /// The branch that was asked for: checked out if it is there and free, else made.
    pub branch: Option<String>,
    /// The branch to be made where none was asked for; a taken one gets `-2`, `-3`.
    pub default_branch: String,
    /// What was made for the same one before.
    pub previous: Vec<WorktreeRecord>,
}

/// A worktree to be, or to be gone on with.
#[derive(Debug, Clone)]
pub struct WorktreeProposal {
    /// To be recorded before [`Plan::add`].
    pub record: WorktreeRecord,
    /// It is there already, from before.
    pub exists: bool,
    /// Where `cwd` is in the repository's tree.
    pub subdirectory: PathBuf,
    /// The directory that was asked for.
    pub cwd: PathBuf,
}

/// Decides, and makes the directory: empty, so that nothing is lost if nobody comes back for it.
///
/// # Errors
/// [`Error::NoRepository`], [`Error::NoCommit`], [`Error::BadBranch`], [`Error::BranchTaken`], and as of every call
/// of git.
pub fn propose_worktree(
    wanted: &WorktreeOptions,
    surroundings: &GitEnvironment,
) -> Result<WorktreeProposal, Error> {
    let repository = Repository::read(&wanted.cwd, surroundings)?;
    let before = wanted.previous.iter().find(|tree| can_reuse(tree, wanted, &repository));
    if let Some(tree) = before {
        let (tree, cwd) = (tree.clone(), wanted.cwd.clone());
        return Ok(WorktreeProposal {
            record: tree,
            exists: true,
            subdirectory: repository.subdirectory,
            cwd,
        });
    }
    let branches = BranchChooser { git: Git::in_directory(&wanted.cwd, surroundings) };
    let (branch, new_branch) = branches.choose(wanted)?;
    let base = branches.base_commit(&branch, new_branch, wanted)?;
    let path = create_directory(&repository.worktrees_dir, &wanted.name)?;
    for path in [&path, &repository.common_git_dir] {
        path.to_str().ok_or_else(|| Error::PathNotUtf8(path.clone()))?;
    }
    let inode = symlink_metadata(&path).map_err(io_error("look at", &path))?.ino();
    let tree = WorktreeRecord {
        path,
        branch,
        branch_created: new_branch,
        common_git_dir: repository.common_git_dir,
        base_commit: base,
        inode,
    };
    Ok(WorktreeProposal {
        record: tree,
        exists: false,
        subdirectory: repository.subdirectory,
        cwd: wanted.cwd.clone(),
    })
}

/// In the middle of a rebase it is on no branch, and goes on all the same.
fn can_reuse(tree: &WorktreeRecord, wanted: &WorktreeOptions, repository: &Repository) -> bool {
    let fits = match &wanted.branch {
        Some(branch) => tree.branch == *branch,
        None => is_branch_of_series(&tree.branch, &wanted.default_branch),
    };
    let Ok(WorktreeState::Present(private)) = tree.state() else { return false };
    let detached = || read_to_string(private.join("HEAD")).is_ok_and(|head| !head.starts_with("ref: "));
    fits && tree.common_git_dir == repository.common_git_dir && (tree.is_on_its_branch() || detached())
}

fn is_branch_of_series(branch: &str, usual: &str) -> bool {
    let rest = branch.strip_prefix(usual);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok())
    })
}

struct BranchChooser<'a> {
    git: Git<'a>,
}

impl BranchChooser<'_> {
    /// Which, and whether it is to be made.
    fn choose(&self, wanted: &WorktreeOptions) -> Result<(String, bool), Error> {
        let Some(branch) = &wanted.branch else {
            return Ok((self.free_branch(&wanted.default_branch)?, true));
        };
        let verb = "look at a branch";
        let checked =
            self.git.run(verb, &["check-ref-format", "--branch", branch.as_str()], b"", READ_TIMEOUT)?;
        if branch.starts_with('-')
            || !checked.is_success()
            || checked.stdout.trim_ascii() != branch.as_bytes()
        {
            return Err(Error::InvalidBranch(branch.clone()));
        }
        if !self.exists(branch)? {
            return Ok((branch.clone(), true));
        }
        let format = "--format=%(worktreepath)";
        let at = self.git.output_line(verb, &["for-each-ref", format, &branch_ref(branch)])?;
        if at.is_empty() {
            return Ok((branch.clone(), false));
        }
        Err(Error::BranchTaken { branch: branch.clone(), worktree: at.into() })
    }

    fn free_branch(&self, usual: &str) -> Result<String, Error> {
        for branch in numbered_names(usual) {
            if !self.exists(&branch)? {
                return Ok(branch);
            }
        }
        Err(Error::InvalidBranch(usual.to_owned()))
    }

    fn exists(&self, branch: &str) -> Result<bool, Error> {
        let arguments = ["show-ref", "--verify", "--quiet", &branch_ref(branch)];
        Ok(self.git.run("look at a branch", &arguments, b"", READ_TIMEOUT)?.is_success())
    }

    fn base_commit(&self, branch: &str, new: bool, wanted: &WorktreeOptions) -> Result<String, Error> {
        let from = if new { "HEAD".to_owned() } else { branch_ref(branch) };
        let arguments = ["rev-parse", "--verify", "--quiet", &format!("{from}^{{commit}}")];
        self.git.output_text("find the commit to begin from", &arguments).map_err(|error| match error {
            Error::Git { .. } => Error::NoCommit(wanted.cwd.clone()),
            error => error,
        })
    }
}

pub(crate) fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn numbered_names(name: &str) -> impl Iterator<Item = String> {
    (1..MAX_NAME_ATTEMPTS).map(move |n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") })
}

/// Made by us, just now: of two who want the same name one gets the next.
fn create_directory(beside: &Path, name: &str) -> Result<PathBuf, Error> {
    DirBuilder::new().recursive(true).create(beside).map_err(io_error("make", beside))?;
    let beside = beside.canonicalize().map_err(io_error("find", beside))?;
    for name in numbered_names(name) {
        let path = beside.join(name);
        failpoint::hit_before_call("worktree.mkdir").map_err(io_error("make", &path))?;
        match create_dir(&path) {
            Ok(()) => {
                failpoint::hit("worktree.made");
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("make", &path)(error)),
        }
    }
    Err(io_error("make", &beside.join(name))(std::io::Error::from(ErrorKind::AlreadyExists)))
}
