//! Creates a proposed worktree, and prepares it for its agent.

use crate::error::Error;
use crate::git_environment::GitEnvironment;
use crate::propose_worktree::WorktreeProposal;
use crate::worktree_record::WorktreeRecord;
use std::path::PathBuf;

impl WorktreeProposal {
    /// Creates the proposed worktree and makes it ready for its agent: runs `git worktree add`,
    /// copies the files that `.worktreeinclude` names, and calls `setup`, the caller's own
    /// preparation. If one of these steps fails, a new worktree is removed.
    ///
    /// The proposal can also be a worktree that exists. If it is ready for an agent, it is only
    /// checked.
    ///
    /// Returns the directory in which the agent works.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeProposal::add`], [`WorktreeRecord::copy_included_files`] and
    /// `setup`.
    pub fn add_and_prepare<E: From<Error>>(
        &self,
        environment: &GitEnvironment,
        setup: impl FnOnce(&WorktreeRecord) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let cwd = self.add(environment)?;
        // A note in the worktree's git directory says that the worktree is ready. There is no note
        // if an earlier process was killed before it had prepared the worktree, or if an older
        // version of teamd has created the worktree.
        if self.record.is_ready_for_agent()? {
            return Ok(cwd);
        }
        let prepared = self.prepare(environment, setup);
        if prepared.is_err() && !self.exists {
            self.record.remove_before_agent_starts(environment).ok();
        }
        prepared.map(|()| cwd)
    }

    fn prepare<E: From<Error>>(
        &self,
        environment: &GitEnvironment,
        setup: impl FnOnce(&WorktreeRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        self.record.copy_included_files(environment)?;
        setup(&self.record)?;
        // A worktree that existed before may have ignored files of an earlier agent or a person.
        match self.exists {
            true => self.record.note_no_created_files()?,
            false => self.record.note_created_files(environment)?,
        }
        Ok(())
    }
}
