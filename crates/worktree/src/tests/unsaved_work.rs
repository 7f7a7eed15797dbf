//! Every kind of unsaved work is seen, and then nothing is removed.

use super::*;
use std::fs::canonicalize;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Just these reasons, and git does not get to remove it.
fn assert_kept(ground: &TestRepository, tree: &WorktreeRecord, reasons: &[KeepReason]) {
    assert_eq!(ground.keep_reasons(tree), reasons);
    assert_eq!(ground.remove(tree), RemoveOutcome::Kept(reasons.to_vec()));
    assert!(tree.path.join(".git").exists());
}

#[test]
fn changed_and_untracked_files() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "other\n");
    assert_kept(&ground, &tree, &[KeepReason::Unstaged(vec!["a".into()])]);
    ground.git(&tree.path, &["add", "a"]);
    assert_kept(&ground, &tree, &[KeepReason::Staged(vec!["a".into()])]);
    ground.git(&tree.path, &["reset", "--quiet", "--hard"]);
    write_file(&tree.path.join("deep/new"), "x");
    assert_kept(&ground, &tree, &[KeepReason::Untracked(vec!["deep/new".into()])]);
    ground.git(&tree.path, &["clean", "--quiet", "-fd"]);
    write_file(&tree.path.join("x.log"), "x");
    write_file(&tree.path.join("kept/x"), "x");
    assert_kept(&ground, &tree, &[KeepReason::Ignored(vec!["kept/".into(), "x.log".into()])]);
    assert_eq!(ground.keep_reasons(&tree)[0].to_string(), "ignored: kept/, x.log");
}

#[test]
fn user_settings_hide_nothing() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    ground.git(&tree.path, &["config", "status.showUntrackedFiles", "no"]);
    ground.git(&tree.path, &["config", "core.quotePath", "true"]);
    write_file(&tree.path.join("nëw"), "x");
    assert_kept(&ground, &tree, &[KeepReason::Untracked(vec!["nëw".into()])]);
}

#[test]
fn cachedir_tag_directories_are_ignored() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("cache/deep/object"), "x");
    assert_kept(&ground, &tree, &[KeepReason::Ignored(vec!["cache/".into()])]);
    write_file(&tree.path.join("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    assert_eq!(ground.keep_reasons(&tree), []);
    assert_eq!(ground.remove(&tree), RemoveOutcome::Removed);
}

#[test]
fn assume_unchanged_and_skip_worktree_files() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        ground.git(&tree.path, &["update-index", flag, "a"]);
        write_file(&tree.path.join("a"), "hidden\n");
        assert_kept(&ground, &tree, &[KeepReason::IgnoredByStatus(vec!["a".into()])]);
    }
}

#[test]
fn local_commits() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    assert_kept(&ground, &tree, &[KeepReason::Unpushed(1)]);
    // On a branch that stays.
    ground.git(&ground.repository, &["merge", "--quiet", "teamd/survey/ann"]);
    assert_eq!(ground.keep_reasons(&tree), []);
    write_file(&tree.path.join("a"), "and more\n");
    ground.commit(&tree.path, "and more");
    ground.add_remote();
    ground.git(&tree.path, &["push", "--quiet", "origin", "HEAD"]);
    assert_eq!(ground.keep_reasons(&tree), [], "its remote has it");
    assert_eq!(ground.remove(&tree), RemoveOutcome::RemovedKeptBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann"]);
}

#[test]
fn unpushed_commits() {
    let ground = TestRepository::new();
    ground.add_remote();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    assert_kept(&ground, &tree, &[KeepReason::Unpushed(1)]);
    // On a branch that it has made itself.
    ground.git(&tree.path, &["switch", "--quiet", "--create", "topic"]);
    assert_kept(&ground, &tree, &[KeepReason::Unpushed(1)]);
}

#[test]
fn detached_head() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    assert_eq!(ground.keep_reasons(&tree), [], "nothing is on it");
    write_file(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    assert_kept(&ground, &tree, &[KeepReason::Detached(1)]);
    ground.git(&tree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    assert_kept(&ground, &tree, &[KeepReason::ReflogOnly(1)]);
}

#[test]
fn reset_commits_keep_the_branch() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    ground.git(&tree.path, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(ground.keep_reasons(&tree), [], "the log of the branch has it");
    assert_eq!(ground.remove(&tree), RemoveOutcome::RemovedKeptBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann@{1}"]);
}

#[test]
fn stashes() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&ground.repository.join("a"), "of the main one\n");
    ground.git(&ground.repository, &["stash", "--quiet"]);
    assert_eq!(ground.keep_reasons(&tree), [], "it is somebody else's");
    for message in [&["stash", "--quiet"][..], &["stash", "push", "--quiet", "--message", "x: y"]] {
        write_file(&tree.path.join("a"), "stashed\n");
        ground.git(&tree.path, message);
    }
    assert_kept(&ground, &tree, &[KeepReason::Stashed(2)]);
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    write_file(&tree.path.join("a"), "stashed on no branch\n");
    ground.git(&tree.path, &["stash", "--quiet"]);
    assert_kept(&ground, &tree, &[KeepReason::Stashed(3)]);
}

#[test]
fn git_and_user_locks() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    ground.git(&ground.repository, &["worktree", "lock", "--reason", "mine", path_str(&tree.path)]);
    assert_kept(&ground, &tree, &[KeepReason::Locked("mine".into())]);
    ground.git(&ground.repository, &["worktree", "unlock", path_str(&tree.path)]);
    let lock = tree.common_git_dir.join("worktrees/survey-ann/index.lock");
    write_file(&lock, "");
    assert_kept(&ground, &tree, &[KeepReason::GitLockFile(lock)]);
}

#[test]
fn operation_in_progress() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    write_file(&tree.path.join("a"), "mine\n");
    ground.commit(&tree.path, "mine");
    write_file(&ground.repository.join("a"), "theirs\n");
    ground.commit(&ground.repository, "theirs");
    for (begin, what, end) in [
        (&["rebase", "main"][..], "rebase", &["rebase", "--abort"][..]),
        (&["merge", "main"], "merge", &["merge", "--abort"]),
        (&["cherry-pick", "main"], "cherry-pick", &["cherry-pick", "--abort"]),
    ] {
        assert!(!ground.run_git(&tree.path, begin).status.success(), "a conflict");
        let reasons = ground.keep_reasons(&tree);
        assert!(reasons.contains(&KeepReason::OperationInProgress(what)), "{what}: {reasons:?}");
        assert!(reasons.contains(&KeepReason::Unstaged(vec!["a".into()])), "{what}: {reasons:?}");
        ground.git(&tree.path, end);
    }
    ground.git(&tree.path, &["bisect", "start"]);
    assert!(ground.keep_reasons(&tree).contains(&KeepReason::OperationInProgress("bisect")));
}

#[test]
fn submodules_with_and_without_work() {
    let ground = TestRepository::new();
    ground.git(ground.home(), &["clone", "--quiet", "--bare", "repo", "sub.git"]);
    let from = ground.home().join("sub.git");
    ground.git(&ground.repository, &["submodule", "--quiet", "add", path_str(&from), "part"]);
    ground.commit(&ground.repository, "a submodule");
    let tree = ground.create_worktree();
    assert_eq!(ground.keep_reasons(&tree), [], "it is not checked out");
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(ground.keep_reasons(&tree), []);
    let work = [KeepReason::Submodule("part".into())];
    write_file(&tree.path.join("part/x.log"), "ignored in it");
    assert_kept(&ground, &tree, &work);
    std::fs::remove_file(tree.path.join("part/x.log")).unwrap();
    write_file(&tree.path.join("part/a"), "more\n");
    ground.commit(&tree.path.join("part"), "in the submodule");
    ground.git(&tree.path.join("part"), &["switch", "--quiet", "--detach", "HEAD~1"]);
    assert_kept(&ground, &tree, &work);
    ground.git(&tree.path.join("part"), &["push", "--quiet", "origin", "HEAD@{1}:refs/heads/more"]);
    assert_eq!(ground.keep_reasons(&tree), []);
    assert_eq!(ground.remove(&tree), RemoveOutcome::Removed);
    assert!(!tree.path.exists());
}

#[test]
fn process_using_the_worktree() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    let mut sleeper = Command::new("cat");
    let mut inside = sleeper.current_dir(&tree.path).stdin(Stdio::piped()).spawn().unwrap();
    assert_kept(&ground, &tree, &[KeepReason::InUse(vec![inside.id()])]);
    inside.kill().and_then(|()| inside.wait()).unwrap();
    // Opened by itself: a file that we had open would be seen in whatever another test starts just now.
    let mut writer = Command::new("sh");
    writer
        .args(["-c", "exec 3>>\"$0\"; echo open; exec cat", path_str(&tree.path.join("a"))])
        .current_dir("/");
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    assert_kept(&ground, &tree, &[KeepReason::InUse(vec![writer.id()])]);
    writer.kill().and_then(|()| writer.wait()).unwrap();
    assert_eq!(ground.keep_reasons(&tree), []);
    assert_eq!(ground.remove(&tree), RemoveOutcome::Removed);
    assert!(canonicalize(&tree.path).is_err());
}

#[test]
fn missing_worktree_counts_as_removed_only_if_unlisted() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    let beside = tree.path.parent().unwrap();
    let away = ground.home().join("not mounted");
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    let moved = |from: &Path, to: &Path| std::fs::rename(from, to).unwrap();
    moved(beside, &away);
    assert_eq!(ground.remove(&tree), RemoveOutcome::Kept(vec![KeepReason::PathMissing]));
    moved(&away, beside);
    assert_eq!(ground.keep_reasons(&tree), []);
    // The repository with it: nobody knows anything.
    moved(beside, &away);
    moved(&ground.repository, &ground.home().join("elsewhere"));
    tree.remove(&ground.git_environment()).unwrap_err();
    moved(&ground.home().join("elsewhere"), &ground.repository);
    ground.git(&ground.repository, &["worktree", "prune"]);
    assert_eq!(ground.remove(&tree), RemoveOutcome::AlreadyGone);
}

#[test]
fn reason_is_one_line() {
    let names = ["a\nno worktree of yours", "\u{1b}[2J"];
    for name in names {
        let all = [
            KeepReason::Untracked(vec![name.into()]),
            KeepReason::Locked(name.into()),
            KeepReason::Submodule(name.into()),
            KeepReason::CheckFailed(name.into()),
        ];
        for reason in all.map(|reason| reason.to_string()) {
            assert!(!reason.chars().any(char::is_control), "{reason:?}");
        }
    }
}
