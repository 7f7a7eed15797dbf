//! Creates references to those commits of a worktree that are in no branch. Without a reference,
//! `git bundle` would not save such a commit.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};

/// Prefix of the names of the references that this module creates. Each worktree has its own
/// `refs/worktree/`, which git removes with the worktree.
pub(crate) const SAVED_REFS: &str = "refs/worktree/teamd/";

/// References to create below [`SAVED_REFS`], as commands for `git update-ref --stdin`.
#[derive(Debug, Default)]
pub(crate) struct SavedRefs(String);

impl SavedRefs {
    /// Adds a reference to `commit`. Does nothing if `commit` is `None`.
    pub(crate) fn add(&mut self, name: &str, commit: Option<String>) {
        let command = commit.map(|commit| format!("update {SAVED_REFS}{name} {commit}\n"));
        self.0.extend(command);
    }

    /// Adds a reference to each commit: `KIND-0`, `KIND-1` and so on.
    pub(crate) fn add_numbered(&mut self, kind: &str, commits: Vec<String>) {
        for (n, commit) in commits.into_iter().enumerate() {
            self.add(&format!("{kind}-{n}"), Some(commit));
        }
    }

    /// Creates the references that were added by [`SavedRefs::add`] and
    /// [`SavedRefs::add_numbered`], in the repository in which `git` runs.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn create(self, git: &Git<'_>) -> Result<(), Error> {
        let action = "create references to unsaved commits";
        let git = git.without_named_programs()?;
        let output = git.run(action, &["update-ref", "--stdin"], self.0.as_bytes(), READ_TIMEOUT)?;
        output.stdout_or_error(action).map(drop)
    }
}
