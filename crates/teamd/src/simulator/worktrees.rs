//! The simulated worktrees and git jobs. Git jobs may end in another order than they started, and
//! may continue after the daemon was killed.

use crate::core::jobs::worktree_jobs::{WorktreeCreation, WorktreeJob, WorktreePath, WorktreeResult};
use crate::core::roster::MemberWorktree;
use crate::simulator::chance::Chance;
use protocol::control_socket::{DeleteTeamRequest, RemovedWorktrees, TrashedWorktree};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use worktree::{WorktreeOptions, WorktreeProposal, WorktreeRecord};

/// The directory of a worktree.
#[derive(Debug)]
pub(super) struct SimulatedWorktree {
    pub(super) record: WorktreeRecord,
    /// Git has filled the directory.
    pub(super) is_filled: bool,
    /// The worktree has unsaved work.
    pub(super) has_unsaved_work: bool,
}

/// All worktrees, and the trash.
#[derive(Debug, Default)]
pub(super) struct Worktrees {
    pub(super) present: BTreeMap<PathBuf, SimulatedWorktree>,
    /// The inodes of discarded worktrees.
    pub(super) trash: BTreeSet<u64>,
    inodes: u64,
}

fn refused_error(message: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, message)
}

impl Worktrees {
    pub(super) fn exists(&self, record: &WorktreeRecord) -> bool {
        self.present
            .get(&record.path)
            .is_some_and(|worktree| worktree.is_filled && worktree.record == *record)
    }

    fn propose_worktree(&mut self, options: &WorktreeOptions) -> WorktreeProposal {
        let (subdirectory, cwd) = (PathBuf::from("sub"), options.cwd.clone());
        if let Some(record) = options.previous.iter().find(|record| self.exists(record)) {
            return WorktreeProposal { record: record.clone(), exists: true, subdirectory, cwd };
        }
        self.inodes += 1;
        let paths = (1..).map(|number| PathBuf::from(format!("/repo.worktrees/{}-{number}", options.name)));
        let path = paths.into_iter().find(|path| !self.present.contains_key(path)).expect("a path is free");
        let record = WorktreeRecord {
            path: path.clone(),
            branch: options.default_branch.clone(),
            branch_created: true,
            common_git_dir: "/repo/.git".into(),
            base_commit: "0".into(),
            inode: self.inodes,
        };
        self.present.insert(
            path,
            SimulatedWorktree { record: record.clone(), is_filled: false, has_unsaved_work: false },
        );
        WorktreeProposal { record, exists: false, subdirectory, cwd }
    }

    fn fill_worktree(&mut self, record: &WorktreeRecord) -> Result<PathBuf, ErrorReport> {
        let worktree = self.present.get_mut(&record.path).filter(|worktree| worktree.record == *record);
        let worktree = worktree.ok_or_else(|| refused_error("the worktree was removed"))?;
        worktree.is_filled = true;
        Ok(record.path.join("sub"))
    }

    /// Whether a deletion would lose unsaved work that the request does not discard.
    fn has_unsaved(&self, request: &DeleteTeamRequest, worktrees: &[MemberWorktree]) -> bool {
        worktrees.iter().map(|worktree| &worktree.record).any(|record| {
            let present = self.present.get(&record.path).filter(|present| present.record == *record);
            present.is_some_and(|present| present.has_unsaved_work)
                && !request.discard_worktrees.contains(&record.path)
        })
    }

    /// Removes worktrees after a check of all of them. Fails after `max_removed` worktrees.
    fn remove_all(
        &mut self,
        request: &DeleteTeamRequest,
        worktrees: &[MemberWorktree],
        max_removed: usize,
        removed_worktrees: &mut RemovedWorktrees,
    ) -> Result<(), ErrorReport> {
        if self.has_unsaved(request, worktrees) {
            return Err(refused_error("there is unsaved work"));
        }
        for (removed_count, worktree) in worktrees.iter().enumerate() {
            let path = worktree.record.path.clone();
            if removed_count >= max_removed {
                return Err(refused_error("git does not answer"));
            }
            match self.present.get(&path) {
                None => removed_worktrees.missing.push(path),
                Some(present) if present.record != worktree.record => {
                    removed_worktrees.kept.push("it is another".to_owned());
                }
                Some(present) => {
                    match present.has_unsaved_work {
                        true => {
                            assert!(
                                request.discard_worktrees.contains(&path),
                                "unsaved work in {path:?} is removed without a request"
                            );
                            self.trash.insert(worktree.record.inode);
                            removed_worktrees.trashed.push(TrashedWorktree {
                                path: path.clone(),
                                trash_dir: "/state/trash/1".into(),
                            });
                        }
                        false => removed_worktrees.removed.push(path.clone()),
                    }
                    self.present.remove(&path);
                }
            }
        }
        Ok(())
    }

    /// Runs a git job.
    pub(super) fn run_job(&mut self, chance: &mut impl Chance, job: WorktreeJob) -> WorktreeResult {
        let fails = chance.goes_wrong(30);
        match job {
            WorktreeJob::Propose { client, team, name, options, environment, setup } => {
                let creation = |proposal| {
                    let (team, name) = (team.clone(), name.clone());
                    Box::new(WorktreeCreation { client, team, name, proposal, environment, setup })
                };
                let result = if fails {
                    Err(refused_error("no repository"))
                } else {
                    Ok(creation(self.propose_worktree(&options)))
                };
                WorktreeResult::Proposed { client, team, name, result }
            }
            WorktreeJob::Fill(creation) => {
                let result = if fails {
                    Err(refused_error("a filter fails"))
                } else {
                    self.fill_worktree(&creation.proposal.record)
                };
                if fails && !creation.proposal.exists && chance.is_first_outcome() {
                    self.present.remove(&creation.proposal.record.path);
                }
                let path = match self.present.contains_key(&creation.proposal.record.path) {
                    true => WorktreePath::Present,
                    false => WorktreePath::Missing,
                };
                WorktreeResult::Filled { creation, result, path }
            }
            WorktreeJob::CheckUnsaved { client, request, worktrees, .. } => {
                let result = if self.has_unsaved(&request, &worktrees) {
                    Err(refused_error("unsaved work"))
                } else {
                    Ok(())
                };
                WorktreeResult::UnsavedChecked { client, request, result }
            }
            WorktreeJob::RemoveAll { client, request, worktrees, .. } => {
                let (max_removed, mut removed_worktrees) =
                    (if fails { chance.choose_index(2) } else { usize::MAX }, RemovedWorktrees::default());
                let result = self.remove_all(&request, &worktrees, max_removed, &mut removed_worktrees);
                WorktreeResult::RemovedAll { client, request, removed_worktrees, result }
            }
        }
    }
}
