//! The words for having a saved worktree back: what a shell does, in the repository or a clone of it.

use crate::keep_reason::escape_controls;
use crate::local_commits::HeadState;
use crate::record::WorktreeRecord;
use crate::save::SAVED_REFS;
use crate::shell_quote::shell_quote;
use std::path::{Path, PathBuf};

/// What was saved of the tree itself, or of one submodule. Each part is there where there was something for it.
#[derive(Debug)]
pub(crate) struct SavedPart {
    /// Where it was in the tree; empty for the tree itself.
    pub(crate) path: PathBuf,
    /// Where it is saved.
    pub(crate) directory: PathBuf,
    pub(crate) head: Option<String>,
    pub(crate) files: Vec<&'static str>,
}

impl SavedPart {
    fn quoted_path(&self, name: &str) -> Option<String> {
        self.files.contains(&name).then(|| shell_quote(&self.directory.join(name)))
    }

    /// A submodule gets a repository of its own again; its remote need not have what it had.
    fn commit_commands(&self, words: &str) -> Vec<String> {
        let fetch = |bundle| format!("git{words} fetch --quiet {bundle} '+refs/*:refs/restored/*'");
        let head = self.head.as_ref().map(|head| format!("git{words} checkout --quiet --detach {head}"));
        let init = format!("git init --quiet {}", shell_quote(&self.path));
        std::iter::once(init).chain(self.quoted_path("commits.bundle").map(fetch)).chain(head).collect()
    }

    fn file_commands(&self, words: &str) -> Vec<String> {
        let lines = [
            self.quoted_path("staged.patch").map(|patch| format!("git{words} apply --index {patch}")),
            self.quoted_path("unstaged.patch").map(|patch| format!("git{words} apply {patch}")),
            self.quoted_path("files.tar").map(|files| format!("tar{words} -xf {files}")),
        ];
        lines.into_iter().flatten().collect()
    }
}

impl WorktreeRecord {
    /// `parts`: itself, then its submodules, the outer ones first.
    pub(crate) fn restore_readme(&self, heads: &HeadState, parts: &[SavedPart]) -> String {
        let shown = |path: &Path| escape_controls(&path.display().to_string());
        let mut to = self.path.clone().into_os_string();
        to.push(".restored");
        let to = shell_quote(Path::new(&to));
        let head = heads.head.clone().unwrap_or_default();
        let mut lines = vec![
            format!("Saved from the worktree {}, which was to be removed then.", shown(&self.path)),
            format!(
                "Its branch was {}, its last commit {head}; it began from {}.",
                self.branch, self.base_commit
            ),
            format!(
                "To have it back, in {} or a clone that has {}:",
                shown(&self.common_git_dir),
                self.base_commit
            ),
            String::new(),
        ];
        let bundle = parts.first().and_then(|own| own.quoted_path("commits.bundle"));
        lines.extend(bundle.map(|bundle| format!("git fetch {bundle} '{SAVED_REFS}*:refs/restored/*'")));
        lines.push(format!("git worktree add --detach {to} {head}"));
        lines.push(format!("cd {to}"));
        for part in parts {
            let is_own = part.path.as_os_str().is_empty();
            let words = if is_own { String::new() } else { format!(" -C {}", shell_quote(&part.path)) };
            lines.extend(if is_own { Vec::new() } else { part.commit_commands(&words) });
            lines.extend(part.file_commands(&words));
        }
        lines.extend([
            String::new(),
            "Beside it: git.tar, git's own notes on the worktree (HEAD, index, logs, a rebase".to_owned(),
            "under way), and in submodules/ what was in them, also in those that were not checked out."
                .to_owned(),
        ]);
        lines.join("\n") + "\n"
    }
}
