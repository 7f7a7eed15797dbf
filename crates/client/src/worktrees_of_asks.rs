//! The git worktrees of `teamctl ask --worktree`. No daemon is needed: `teamctl` creates a
//! worktree, and the shim removes it when the ask ends. A worktree with unsaved work is kept.
//!
//! Invariant: each such worktree has a record in the state directory. The record is written before
//! git creates the files of the worktree, and deleted after the worktree is removed. So if
//! `teamctl` and the shim are killed, `teamctl ask --list` and `teamctl doctor` still show the
//! worktree. `ask_worktree::killed_programs_leave_a_listed_worktree` checks this.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use protocol::teamctl_ask_setup_and_record::{AskId, AskWorktree};
use std::path::{Path, PathBuf};
use store::StateDir;
use worktree::{
    GitEnvironment, KeepReason, RemoveOutcome, WorktreeOptions, WorktreeRecord, propose_worktree,
};

/// The directory with the records of the worktrees, which is also that of the asks.
#[derive(Debug)]
pub struct AskWorktrees(StateDir);

/// A worktree that is ready for the program of an ask.
#[derive(Debug)]
pub struct ReadyAskWorktree {
    /// The worktree.
    pub worktree: AskWorktree,
    /// The directory in the worktree in which the program works.
    pub cwd: PathBuf,
}

impl AskWorktrees {
    /// The worktrees whose records are in `asks_dir`.
    pub fn new(asks_dir: StateDir) -> AskWorktrees {
        AskWorktrees(asks_dir)
    }

    /// Creates the worktree for the call of `teamctl ask` with the id `ask`, from the repository
    /// that contains `cwd`. If this worktree already exists, it is used again.
    ///
    /// # Errors
    ///
    /// If `cwd` is in no repository with a commit, or if git fails. After an error no new worktree
    /// is left.
    pub fn create(&self, ask: &AskId, cwd: &Path) -> Result<ReadyAskWorktree, ErrorReport> {
        let (environment, earlier) = (GitEnvironment::from_process(), self.find(ask)?);
        let options = WorktreeOptions {
            cwd: cwd.to_owned(),
            name: ask.to_string(),
            branch: None,
            default_branch: format!("teamd/{ask}"),
            previous: earlier.clone().into_iter().collect(),
        };
        let proposal = propose_worktree(&options, &environment)?;
        let record = &proposal.record;
        if let Some(earlier) = earlier.filter(|earlier| earlier.path != record.path && earlier.path.exists())
        {
            std::fs::remove_dir(&record.path).ok();
            return Err(other_branch_error(ask, &earlier));
        }
        let json = serde_json::to_vec(record).expect("the paths of a record are UTF-8");
        self.0.replace(&ask.worktree_file_name(), &json)?;
        failpoint::hit("ask.worktree_recorded");
        match proposal.add_and_prepare(&environment, |_| Ok::<(), ErrorReport>(())) {
            Ok(cwd) => Ok(ReadyAskWorktree { worktree: ask_worktree(record, Vec::new()), cwd }),
            Err(error) => {
                self.remove_unless_unsaved(ask).ok();
                Err(error)
            }
        }
    }

    /// The recorded worktrees, each with the id of the `teamctl ask` for which it was created.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a record cannot be read.
    pub fn all(&self) -> Result<Vec<(AskId, AskWorktree)>, ErrorReport> {
        let names = self.0.names()?.into_iter();
        let asks = names.filter_map(|name| AskId::from_worktree_file_name(&name));
        let worktree = |ask: AskId| {
            Some(self.find(&ask).transpose()?.map(|record| (ask, ask_worktree(&record, Vec::new()))))
        };
        asks.filter_map(worktree).collect()
    }

    /// Removes the worktree of `ask` unless it has unsaved work. If the worktree is kept, returns
    /// it with the reasons.
    ///
    /// # Errors
    ///
    /// The record cannot be read, written or removed. An error of git is not returned: it counts as
    /// a reason to keep the worktree.
    pub fn remove_unless_unsaved(&self, ask: &AskId) -> Result<Option<AskWorktree>, ErrorReport> {
        let Some(record) = self.find(ask)? else { return Ok(None) };
        let unsaved = match record.remove(&GitEnvironment::from_process()) {
            Ok(RemoveOutcome::Kept(reasons)) => reasons.iter().map(KeepReason::to_string).collect(),
            Ok(_) => {
                self.0.remove(&ask.worktree_file_name())?;
                return Ok(None);
            }
            Err(error) => vec![error.to_string()],
        };
        Ok(Some(ask_worktree(&record, unsaved)))
    }

    /// The record of the worktree of `ask`. `None` if there is none.
    fn find(&self, ask: &AskId) -> Result<Option<WorktreeRecord>, ErrorReport> {
        let file = ask.worktree_file_name();
        let Some(bytes) = self.0.read(&file)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let path = self.0.path().join(file);
            ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
                .with_help("remove it, after a look at: git worktree list")
        })
    }
}

/// The error if the earlier worktree cannot be used again. Its record must not be replaced.
fn other_branch_error(ask: &AskId, earlier: &WorktreeRecord) -> ErrorReport {
    let path = earlier.path.display();
    let message = format!("cannot continue in the worktree of {ask}, {path}: it is not on its branch");
    let path = shell_quote(&path.to_string());
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("git -C {path} switch {}", shell_quote(&earlier.branch)))
}

fn ask_worktree(record: &WorktreeRecord, unsaved: Vec<String>) -> AskWorktree {
    AskWorktree { path: record.path.clone(), branch: record.branch.clone(), unsaved }
}
