//! The words for having a saved worktree back: what a shell does, in the repository or a clone of it.

use crate::commits::Heads;
use crate::quote::quoted;
use crate::reason::flat;
use crate::save::OURS;
use crate::tree::Tree;
use std::path::{Path, PathBuf};

/// What was saved of the tree itself, or of one submodule. Each part is there where there was something for it.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where it was in the tree; empty for the tree itself.
    pub(crate) at: PathBuf,
    /// Where it is saved.
    pub(crate) directory: PathBuf,
    pub(crate) head: Option<String>,
    pub(crate) has: Vec<&'static str>,
}

impl Part {
    fn of(&self, name: &str) -> Option<String> {
        self.has.contains(&name).then(|| quoted(&self.directory.join(name)))
    }

    /// A submodule gets a repository of its own again; its remote need not have what it had.
    fn commits(&self, words: &str) -> Vec<String> {
        let fetch = |bundle| format!("git{words} fetch --quiet {bundle} '+refs/*:refs/restored/*'");
        let head = self.head.as_ref().map(|head| format!("git{words} checkout --quiet --detach {head}"));
        let init = format!("git init --quiet {}", quoted(&self.at));
        std::iter::once(init).chain(self.of("commits.bundle").map(fetch)).chain(head).collect()
    }

    fn files(&self, words: &str) -> Vec<String> {
        let lines = [
            self.of("staged.patch").map(|patch| format!("git{words} apply --index {patch}")),
            self.of("unstaged.patch").map(|patch| format!("git{words} apply {patch}")),
            self.of("files.tar").map(|files| format!("tar{words} -xf {files}")),
        ];
        lines.into_iter().flatten().collect()
    }
}

impl Tree {
    /// `parts`: itself, then its submodules, the outer ones first.
    pub(crate) fn words(&self, heads: &Heads, parts: &[Part]) -> String {
        let shown = |path: &Path| flat(&path.display().to_string());
        let mut to = self.path.clone().into_os_string();
        to.push(".restored");
        let to = quoted(Path::new(&to));
        let head = heads.head.clone().unwrap_or_default();
        let mut lines = vec![
            format!("Saved from the worktree {}, which was to be removed then.", shown(&self.path)),
            format!("Its branch was {}, its last commit {head}; it began from {}.", self.branch, self.base),
            format!("To have it back, in {} or a clone that has {}:", shown(&self.repository), self.base),
            String::new(),
        ];
        let bundle = parts.first().and_then(|own| own.of("commits.bundle"));
        lines.extend(bundle.map(|bundle| format!("git fetch {bundle} '{OURS}*:refs/restored/*'")));
        lines.push(format!("git worktree add --detach {to} {head}"));
        lines.push(format!("cd {to}"));
        for part in parts {
            let is_own = part.at.as_os_str().is_empty();
            let words = if is_own { String::new() } else { format!(" -C {}", quoted(&part.at)) };
            lines.extend(if is_own { Vec::new() } else { part.commits(&words) });
            lines.extend(part.files(&words));
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
