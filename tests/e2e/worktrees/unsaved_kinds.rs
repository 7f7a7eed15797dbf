//! Creates worktrees with twelve kinds of unsaved work, and checks that the work is kept.

use super::{create_repository, files_below, git, path_text, run_git, spawn, write_file};
use harness::{Facility, TestEnv};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kinds, each with the reason that a rejected delete names.
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

/// A worktree with one kind of unsaved work.
pub(super) struct UnsavedWorktree {
    pub(super) kind: &'static str,
    reason: &'static str,
    pub(super) repository: PathBuf,
    pub(super) worktree: PathBuf,
    pub(super) member: String,
    /// The process that works in the worktree, for the kind `in-use`.
    process: Option<std::process::Child>,
    /// All that could be lost: the files and the state of git.
    pub(super) before: (BTreeMap<PathBuf, Vec<u8>>, String),
}

impl UnsavedWorktree {
    /// Creates one member with its own repository for each kind.
    pub(super) fn create_all(env: &TestEnv) -> Vec<UnsavedWorktree> {
        let is_skipped =
            |kind: &str| kind == "in-use" && harness::skips_without(Facility::WorkingDirectories);
        let kinds = KINDS.iter().filter(|(kind, _)| !is_skipped(kind));
        kinds.map(|(kind, reason)| UnsavedWorktree::create(env, kind, reason)).collect()
    }

    fn create(env: &TestEnv, kind: &'static str, reason: &'static str) -> UnsavedWorktree {
        let repository = create_repository(env, &format!("repo-{kind}"));
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
            let source = format!("{}/.git", path_text(&env.path("repo")));
            let config = "protocol.file.allow=always";
            git(env, &repository, &["-c", config, "submodule", "--quiet", "add", &source, "part"]);
            git(env, &repository, &["commit", "--quiet", "--message", "a part"]);
            git(env, &repository, &["push", "--quiet", "origin", "main"]);
        }
        let member = format!("of-{kind}");
        let tree = spawn(env, &member, &repository);
        let process = add_unsaved_work(env, kind, &repository, &tree);
        let mut dirty = UnsavedWorktree {
            kind,
            reason,
            repository,
            worktree: tree,
            member,
            process,
            before: Default::default(),
        };
        dirty.before = dirty.snapshot(env);
        dirty
    }

    /// The files, and the state of git: commits, index, stashes, reflog and submodules.
    fn snapshot(&self, env: &TestEnv) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
        let git_output =
            |args: &[&str]| String::from_utf8_lossy(&run_git(env, &self.worktree, args).stdout).into_owned();
        let git = [
            git_output(&["rev-parse", "HEAD", "teamd/survey/of-x"]),
            git_output(&["status", "--porcelain", "--branch", "--ignored"]),
            git_output(&["diff", "--cached"]),
            git_output(&["stash", "list"]),
            git_output(&["log", "--walk-reflogs", "--format=%H", "HEAD", "--"]),
            git_output(&["submodule", "foreach", "--quiet", "git rev-parse HEAD; git status --porcelain"]),
        ];
        (files_below(&self.worktree), git.concat())
    }

    pub(super) fn assert_unchanged(&self, env: &TestEnv) {
        assert_eq!(self.snapshot(env), self.before, "the kind {} is unchanged", self.kind);
    }
}

/// Creates unsaved work of the kind in the worktree. Returns the process of the kind `in-use`.
fn add_unsaved_work(
    env: &TestEnv,
    kind: &str,
    repository: &Path,
    tree: &Path,
) -> Option<std::process::Child> {
    let commit = |directory: &Path, name: &str, text: &str| {
        write_file(&directory.join(name), text);
        git(env, directory, &["add", "--all"]);
        git(env, directory, &["commit", "--quiet", "--message", text]);
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
            let config = "protocol.file.allow=always";
            git(env, tree, &["-c", config, "submodule", "--quiet", "update", "--init"]);
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
            assert!(!run_git(env, tree, &["rebase", "main"]).status.success(), "the rebase has a conflict");
        }
        other => panic!("unknown kind {other}"),
    }
    None
}

/// Checks that the delete is rejected with the path and the reason of every worktree, and that no
/// work is lost.
pub(super) fn assert_delete_rejected(env: &TestEnv, worktrees: &[UnsavedWorktree]) {
    let error = env.teamctl(["delete", "survey", "--force"]).expect_failure(76);
    for dirty in worktrees {
        let line = error.lines().find(|line| line.contains(&format!("({}): ", dirty.member)));
        let line = line.unwrap_or_else(|| panic!("{}: {error}", dirty.kind));
        assert!(
            line.contains(path_text(&dirty.worktree)) && line.contains(dirty.reason),
            "{}: {line}",
            dirty.kind
        );
        assert!(error.contains(&format!("--discard {}", path_text(&dirty.worktree))), "{error}");
        dirty.assert_unchanged(env);
    }
    assert!(env.path("root/teams/survey/config.json").exists() && env.path("root/tasks/survey").exists());
}

pub(super) fn end_processes(worktrees: &mut [UnsavedWorktree]) {
    for process in worktrees.iter_mut().filter_map(|dirty| dirty.process.as_mut()) {
        process.kill().and_then(|()| process.wait()).unwrap();
    }
}
