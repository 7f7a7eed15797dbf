//! Writes the README of a saved worktree. It contains the shell commands that restore the worktree,
//! in its repository or in a clone.

use crate::head_and_reflog_of_worktree::HeadState;
use crate::keep_reason::escape_controls;
use crate::temporary_refs_for_git_bundle::SAVED_REFS;
use crate::trash_branch_names::trash_branch;
use crate::worktree_record::WorktreeRecord;
use protocol::shell_quote::shell_quote;
use std::path::{Path, PathBuf};

/// What was saved of the worktree itself, or of one submodule.
#[derive(Debug)]
pub(crate) struct SavedPart {
    /// Path in the worktree. Empty for the worktree itself.
    pub(crate) path: PathBuf,
    /// The directory with the saved files.
    pub(crate) directory: PathBuf,
    /// The commit of HEAD. `None` if there was no commit.
    pub(crate) head: Option<String>,
    /// Names of the saved files in `directory`. A file without content is not saved.
    pub(crate) files: Vec<&'static str>,
}

impl SavedPart {
    /// Returns the path of a saved file, quoted for a shell. `None` if this file was not saved.
    fn quoted_path(&self, name: &str) -> Option<String> {
        self.files.contains(&name).then(|| shell_word(&self.directory.join(name)))
    }

    /// Returns the commands that create the repository of a submodule and check out its commit. The
    /// commands do not use the submodule's remote, which may lack the commits.
    fn commit_commands(&self, location_args: &str) -> Vec<String> {
        let fetch = |bundle| format!("git{location_args} fetch --quiet {bundle} '+refs/*:refs/restored/*'");
        let head =
            self.head.as_ref().map(|head| format!("git{location_args} checkout --quiet --detach {head}"));
        let init = format!("git init --quiet {}", shell_word(&self.path));
        std::iter::once(init).chain(self.quoted_path("commits.bundle").map(fetch)).chain(head).collect()
    }

    /// Returns the commands that restore changed files.
    fn file_commands(&self, location_args: &str) -> Vec<String> {
        let lines = [
            self.quoted_path("staged.patch").map(|patch| format!("git{location_args} apply --index {patch}")),
            self.quoted_path("unstaged.patch").map(|patch| format!("git{location_args} apply {patch}")),
            self.quoted_path("changed-files.tar").map(|files| format!("tar{location_args} -xf {files}")),
        ];
        lines.into_iter().flatten().collect()
    }
}

impl WorktreeRecord {
    /// Returns the text of the README. The README is written to `trash`, the directory in which the
    /// worktree is saved. `parts` has the worktree first, then its submodules. A submodule comes
    /// after the submodule that contains it.
    ///
    /// Only the lines that begin with `git `, `cd ` or `tar ` are commands; the other lines
    /// explain.
    pub(crate) fn restore_readme(&self, head_state: &HeadState, parts: &[SavedPart], trash: &Path) -> String {
        let display = |path: &Path| escape_controls(&path.display().to_string());
        let mut restored_path = self.path.clone().into_os_string();
        restored_path.push(".restored");
        let restored_path = shell_word(Path::new(&restored_path));
        let head = head_state.head.clone().unwrap_or_default();
        let mut lines = vec![
            format!("Saved from the worktree {}, before it was removed.", display(&self.path)),
            format!(
                "Branch: {}. Last commit: {head}. Created from commit: {}.",
                self.branch, self.base_commit
            ),
        ];
        lines.extend(self.branch_created.then(|| self.renamed_branch_line(trash)));
        lines.extend([
            format!(
                "To restore it, run these commands in {} or in a clone that has {}:",
                display(&self.common_git_dir),
                self.base_commit
            ),
            String::new(),
        ]);
        let bundle = parts.first().and_then(|main_part| main_part.quoted_path("commits.bundle"));
        lines.extend(bundle.map(|bundle| format!("git fetch {bundle} '{SAVED_REFS}*:refs/restored/*'")));
        lines.push(format!("git worktree add --detach {restored_path} {head}"));
        lines.push(format!("cd {restored_path}"));
        for part in parts {
            let is_worktree = part.path.as_os_str().is_empty();
            let location_args =
                if is_worktree { String::new() } else { format!(" -C {}", shell_word(&part.path)) };
            lines.extend(if is_worktree { Vec::new() } else { part.commit_commands(&location_args) });
            lines.extend(part.file_commands(&location_args));
        }
        lines.extend([
            String::new(),
            "Saved too: git-dir.tar has the private git directory of the worktree (HEAD, index, reflogs,"
                .to_owned(),
            "a rebase in progress); submodules/ has the submodules, also those without a checkout."
                .to_owned(),
        ]);
        lines.join("\n") + "\n"
    }

    /// The line of the README that gives the new name of a branch that was created for the
    /// worktree.
    fn renamed_branch_line(&self, trash: &Path) -> String {
        let (branch, renamed_branch) = (&self.branch, trash_branch(trash));
        format!(
            "The branch is now {renamed_branch}, unless it was merged. To rename it: git branch -m {renamed_branch} {branch}"
        )
    }
}

/// Returns the path as one word of a shell.
fn shell_word(path: &Path) -> String {
    shell_quote(&path.display().to_string())
}
