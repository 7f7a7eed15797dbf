//! Twelve kinds of unsaved work, each in a worktree of its own.

use super::{files_below, git, path_text, repository, run_git, spawn, write_file};
use harness::TestEnv;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kinds, each with what a refusal says of it.
const KINDS: [(&str, &str); 12] = [
    ("staged", "staged: a"),
    ("unstaged", "changed and not staged: a"),
    ("untracked", "untracked: new"),
    ("ignored", "ignored: kept.log"),
    ("unpushed", "1 commit that no other branch has"),
    ("stashed", "1 stash"),
    ("locked", "locked: mine"),
    ("submodule", "work in the submodule part"),
    ("detached", "1 commit on no branch"),
    ("in-use", "in use by process"),
    ("mid-rebase", "in the middle of a rebase"),
    ("no-remote", "1 commit that no other branch has"),
];

/// What is open while a test runs.
pub(super) struct UnsavedWorktree {
    pub(super) kind: &'static str,
    reason: &'static str,
    pub(super) repository: PathBuf,
    pub(super) worktree: PathBuf,
    pub(super) member: String,
    process: Option<std::process::Child>,
    /// Everything of it that could be lost.
    pub(super) before: (BTreeMap<PathBuf, Vec<u8>>, String),
}

impl UnsavedWorktree {
    /// One member for each kind, each with a repository of its own.
    pub(super) fn create_all(env: &TestEnv) -> Vec<UnsavedWorktree> {
        KINDS.iter().map(|(kind, says)| UnsavedWorktree::create(env, kind, says)).collect()
    }

    fn create(env: &TestEnv, kind: &'static str, says: &'static str) -> UnsavedWorktree {
        let repository = repository(env, &format!("repo-{kind}"));
        if kind != "no-remote" {
            let remote = env.path(&format!("remote-{kind}.git"));
            git(
                env,
                &env.path(""),
                &["clone", "--quiet", "--bare", path_text(&repository), path_text(&remote)],
            );
            git(env, &repository, &["remote", "add", "origin", path_text(&remote)]);
            git(env, &repository, &["fetch", "--quiet", "origin"]);
        }
        if kind == "submodule" {
            let from = format!("{}/.git", path_text(&env.path("repo")));
            let file = "protocol.file.allow=always";
            git(env, &repository, &["-c", file, "submodule", "--quiet", "add", &from, "part"]);
            git(env, &repository, &["commit", "--quiet", "--message", "a part"]);
            git(env, &repository, &["push", "--quiet", "origin", "main"]);
        }
        let member = format!("of-{kind}");
        let tree = spawn(env, &member, &repository);
        let inside = add_unsaved_work(env, kind, &repository, &tree);
        let mut dirty = UnsavedWorktree {
            kind,
            reason: says,
            repository,
            worktree: tree,
            member,
            process: inside,
            before: Default::default(),
        };
        dirty.before = dirty.snapshot(env);
        dirty
    }

    /// Files, and what git knows: the commits, the index, the stashes, what is under way.
    fn snapshot(&self, env: &TestEnv) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
        let tell = |arguments: &[&str]| {
            String::from_utf8_lossy(&run_git(env, &self.worktree, arguments).stdout).into_owned()
        };
        let git = [
            tell(&["rev-parse", "HEAD", "teamd/survey/of-x"]),
            tell(&["status", "--porcelain", "--branch", "--ignored"]),
            tell(&["diff", "--cached"]),
            tell(&["stash", "list"]),
            tell(&["log", "--walk-reflogs", "--format=%H", "HEAD", "--"]),
            tell(&["submodule", "foreach", "--quiet", "git rev-parse HEAD; git status --porcelain"]),
        ];
        (files_below(&self.worktree), git.concat())
    }

    pub(super) fn assert_unchanged(&self, env: &TestEnv) {
        assert_eq!(self.snapshot(env), self.before, "{} is as it was", self.kind);
    }
}

/// Puts unsaved work of that kind into it.
fn add_unsaved_work(
    env: &TestEnv,
    kind: &str,
    repository: &Path,
    tree: &Path,
) -> Option<std::process::Child> {
    let commit = |at: &Path, file: &str, text: &str| {
        write_file(&at.join(file), text);
        git(env, at, &["add", "--all"]);
        git(env, at, &["commit", "--quiet", "--message", text]);
    };
    match kind {
        "staged" => {
            write_file(&tree.join("a"), "staged\n");
            git(env, tree, &["add", "a"]);
        }
        "unstaged" => write_file(&tree.join("a"), "unstaged\n"),
        "untracked" => write_file(&tree.join("new"), "untracked\n"),
        "ignored" => write_file(&tree.join("kept.log"), "ignored\n"),
        "unpushed" | "no-remote" => commit(tree, "a", "committed\n"),
        "stashed" => {
            write_file(&tree.join("a"), "stashed\n");
            git(env, tree, &["stash", "--quiet"]);
        }
        "locked" => drop(git(env, repository, &["worktree", "lock", "--reason", "mine", path_text(tree)])),
        "submodule" => {
            let file = "protocol.file.allow=always";
            git(env, tree, &["-c", file, "submodule", "--quiet", "update", "--init"]);
            commit(&tree.join("part"), "a", "in the part\n");
            git(env, &tree.join("part"), &["branch", "kept"]);
            git(env, tree, &["submodule", "--quiet", "update", "--force"]);
        }
        "detached" => {
            git(env, tree, &["switch", "--quiet", "--detach"]);
            commit(tree, "a", "on no branch\n");
        }
        "in-use" => {
            let mut cat = env.command("cat");
            return Some(cat.current_dir(tree).stdin(std::process::Stdio::piped()).spawn().unwrap());
        }
        "mid-rebase" => {
            commit(tree, "a", "mine\n");
            commit(repository, "a", "theirs\n");
            assert!(!run_git(env, tree, &["rebase", "main"]).status.success(), "a conflict");
        }
        other => panic!("{other} is no kind"),
    }
    None
}

/// Refused, with every path and its reason, and nothing is gone.
pub(super) fn assert_delete_rejected(env: &TestEnv, all: &[UnsavedWorktree]) {
    let said = env.teamctl(["delete", "survey", "--force"]).expect_failure(76);
    for dirty in all {
        let line = said.lines().find(|line| line.contains(&format!("({}): ", dirty.member)));
        let line = line.unwrap_or_else(|| panic!("{}: {said}", dirty.kind));
        assert!(
            line.contains(path_text(&dirty.worktree)) && line.contains(dirty.reason),
            "{}: {line}",
            dirty.kind
        );
        assert!(said.contains(&format!("--discard {}", path_text(&dirty.worktree))), "{said}");
        dirty.assert_unchanged(env);
    }
    assert!(env.path("root/teams/survey/config.json").exists() && env.path("root/tasks/survey").exists());
}

pub(super) fn end_processes(all: &mut [UnsavedWorktree]) {
    for inside in all.iter_mut().filter_map(|dirty| dirty.process.as_mut()) {
        inside.kill().and_then(|()| inside.wait()).unwrap();
    }
}
