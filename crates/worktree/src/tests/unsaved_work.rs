//! Each kind of unsaved work is found and prevents the removal of the worktree.

use super::*;
use std::fs::canonicalize;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Checks that the worktree has exactly these reasons to be kept, and that it is not removed.
fn assert_kept(repo: &TestRepository, worktree: &WorktreeRecord, reasons: &[KeepReason]) {
    assert_eq!(repo.keep_reasons(worktree), reasons);
    assert_eq!(repo.remove(worktree), RemoveOutcome::Kept(reasons.to_vec()));
    assert!(worktree.path.join(".git").exists());
}

#[test]
fn changed_and_untracked_files_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "other\n");
    assert_kept(&repo, &worktree, &[KeepReason::Unstaged(vec!["a".into()])]);
    repo.git(&worktree.path, &["add", "a"]);
    assert_kept(&repo, &worktree, &[KeepReason::Staged(vec!["a".into()])]);
    repo.git(&worktree.path, &["reset", "--quiet", "--hard"]);
    write_file(&worktree.path.join("deep/new"), "x");
    assert_kept(&repo, &worktree, &[KeepReason::Untracked(vec!["deep/new".into()])]);
    repo.git(&worktree.path, &["clean", "--quiet", "-fd"]);
    write_file(&worktree.path.join("x.log"), "x");
    write_file(&worktree.path.join("kept/x"), "x");
    assert_kept(&repo, &worktree, &[KeepReason::Ignored(vec!["kept/".into(), "x.log".into()])]);
    assert_eq!(repo.keep_reasons(&worktree)[0].to_string(), "ignored: kept/, x.log");
}

#[test]
fn user_settings_do_not_hide_files() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["config", "status.showUntrackedFiles", "no"]);
    repo.git(&worktree.path, &["config", "core.quotePath", "true"]);
    write_file(&worktree.path.join("nëw"), "x");
    assert_kept(&repo, &worktree, &[KeepReason::Untracked(vec!["nëw".into()])]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn directories_with_a_cachedir_tag_do_not_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("cache/deep/object"), "x");
    assert_kept(&repo, &worktree, &[KeepReason::Ignored(vec!["cache/".into()])]);
    write_file(&worktree.path.join("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    assert_eq!(repo.keep_reasons(&worktree), []);
    repo.git(&worktree.path.join("cache/deep"), &["init", "--quiet"]);
    assert_kept(&repo, &worktree, &[KeepReason::Repository("cache/deep".into())]);
    std::os::unix::fs::symlink(repo.home().join("repo"), worktree.path.join("cache/link")).unwrap();
    assert_kept(&repo, &worktree, &[KeepReason::Repository("cache/deep".into())]);
    let saved = worktree.save(&repo.home().join("trash"), &repo.git_environment());
    let archive = repo.home().join("trash/changed-files.tar");
    let files = Command::new("tar").arg("tf").arg(archive).output().unwrap().stdout;
    let files = String::from_utf8(files).unwrap();
    assert!(saved.is_ok() && files.contains("cache/deep/.git/HEAD"), "{files}");
    std::fs::rename(worktree.path.join("cache/deep/.git"), repo.home().join("away")).unwrap();
    repo.git(&worktree.path.join("cache"), &["init", "--quiet", "--bare", "bare"]);
    assert_kept(&repo, &worktree, &[KeepReason::Repository("cache/bare".into())]);
    std::fs::rename(worktree.path.join("cache/bare"), repo.home().join("away-too")).unwrap();
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn commits_are_found_in_a_repository_without_reflogs() {
    let repo = TestRepository::new();
    repo.git(&repo.repository, &["config", "core.logAllRefUpdates", "false"]);
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["switch", "--quiet", "--detach"]);
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    repo.git(&worktree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    assert_kept(&repo, &worktree, &[KeepReason::ReflogOnly(1)]);
    let log = repo.git(&worktree.path, &["rev-parse", "--git-path", "logs/HEAD"]);
    std::fs::remove_file(worktree.path.join(log.trim())).unwrap();
    assert_kept(&repo, &worktree, &[KeepReason::ReflogMissing]);
}

#[test]
fn changed_files_that_status_ignores_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        repo.git(&worktree.path, &["update-index", flag, "a"]);
        write_file(&worktree.path.join("a"), "hidden\n");
        assert_kept(&repo, &worktree, &[KeepReason::IgnoredByStatus(vec!["a".into()])]);
    }
}

#[test]
fn local_commits_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    assert_kept(&repo, &worktree, &[KeepReason::Unpushed(1)]);
    // The main branch has the commit now, so nothing is unsaved.
    repo.git(&repo.repository, &["merge", "--quiet", "teamd/survey/ann"]);
    assert_eq!(repo.keep_reasons(&worktree), []);
    write_file(&worktree.path.join("a"), "and more\n");
    repo.commit(&worktree.path, "and more");
    repo.add_remote();
    repo.git(&worktree.path, &["push", "--quiet", "origin", "HEAD"]);
    assert_eq!(repo.keep_reasons(&worktree), [], "the remote has the commit");
    assert_eq!(repo.remove(&worktree), RemoveOutcome::RemovedKeptBranch);
    repo.git(&repo.repository, &["rev-parse", "--verify", "teamd/survey/ann"]);
}

#[test]
fn unpushed_commits_prevent_removal() {
    let repo = TestRepository::new();
    repo.add_remote();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    assert_kept(&repo, &worktree, &[KeepReason::Unpushed(1)]);
    // The commit is on a branch that was created in the worktree.
    repo.git(&worktree.path, &["switch", "--quiet", "--create", "topic"]);
    assert_kept(&repo, &worktree, &[KeepReason::Unpushed(1)]);
}

#[test]
fn clone_of_one_branch_names_the_fetch_that_finds_pushed_commits() {
    let repo = TestRepository::new();
    repo.git(repo.home(), &["clone", "--quiet", "--bare", "repo", "origin.git"]);
    let source = format!("file://{}", path_str(&repo.home().join("origin.git")));
    repo.git(repo.home(), &["clone", "--quiet", "--single-branch", &source, "narrow"]);
    let proposal = repo.propose(&repo.options(&repo.home().join("narrow")));
    proposal.add(&repo.git_environment()).unwrap();
    let worktree = proposal.record;
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    repo.git(&worktree.path, &["push", "--quiet", "origin", "HEAD:refs/heads/ci"]);
    assert_kept(&repo, &worktree, &[KeepReason::Unpushed(1), KeepReason::NarrowRemote("origin".into())]);
    let text = KeepReason::NarrowRemote("origin".into()).to_string();
    let (_, command) = text.split_once("git fetch ").unwrap();
    let words: Vec<&str> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
    repo.git(&worktree.path, &[&["fetch", "--quiet"], words.as_slice()].concat());
    assert_eq!(repo.keep_reasons(&worktree), []);
}

#[test]
fn commits_on_a_detached_head_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    repo.git(&worktree.path, &["switch", "--quiet", "--detach"]);
    assert_eq!(repo.keep_reasons(&worktree), [], "the detached HEAD has no new commit");
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    assert_kept(&repo, &worktree, &[KeepReason::Detached(1)]);
    repo.git(&worktree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    assert_kept(&repo, &worktree, &[KeepReason::ReflogOnly(1)]);
}

#[test]
fn reset_commits_keep_the_branch() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    repo.git(&worktree.path, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(repo.keep_reasons(&worktree), [], "the reflog of the branch has the commit");
    assert_eq!(repo.remove(&worktree), RemoveOutcome::RemovedKeptBranch);
    repo.git(&repo.repository, &["rev-parse", "--verify", "teamd/survey/ann@{1}"]);
}

#[test]
fn stashes_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&repo.repository.join("a"), "in the main worktree\n");
    repo.git(&repo.repository, &["stash", "--quiet"]);
    assert_eq!(repo.keep_reasons(&worktree), [], "the stash was made in the main worktree");
    for stash in [&["stash", "--quiet"][..], &["stash", "push", "--quiet", "--message", "x: y"]] {
        write_file(&worktree.path.join("a"), "stashed\n");
        repo.git(&worktree.path, stash);
    }
    assert_kept(&repo, &worktree, &[KeepReason::Stashed(2)]);
    repo.git(&worktree.path, &["switch", "--quiet", "--detach"]);
    write_file(&worktree.path.join("a"), "stashed on no branch\n");
    repo.git(&worktree.path, &["stash", "--quiet"]);
    assert_kept(&repo, &worktree, &[KeepReason::Stashed(3)]);
}

#[test]
fn git_and_user_locks_prevent_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    repo.git(&repo.repository, &["worktree", "lock", "--reason", "mine", path_str(&worktree.path)]);
    assert_kept(&repo, &worktree, &[KeepReason::Locked("mine".into())]);
    repo.git(&repo.repository, &["worktree", "unlock", path_str(&worktree.path)]);
    let lock = worktree.common_git_dir.join("worktrees/survey-ann/index.lock");
    write_file(&lock, "");
    assert_kept(&repo, &worktree, &[KeepReason::GitLockFile(lock)]);
}

#[test]
fn operation_in_progress_prevents_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "mine\n");
    repo.commit(&worktree.path, "mine");
    write_file(&repo.repository.join("a"), "theirs\n");
    repo.commit(&repo.repository, "theirs");
    for (start, operation, abort) in [
        (&["rebase", "main"][..], "rebase", &["rebase", "--abort"][..]),
        (&["merge", "main"], "merge", &["merge", "--abort"]),
        (&["cherry-pick", "main"], "cherry-pick", &["cherry-pick", "--abort"]),
    ] {
        assert!(!repo.run_git(&worktree.path, start).status.success(), "the operation stops at a conflict");
        let reasons = repo.keep_reasons(&worktree);
        assert!(reasons.contains(&KeepReason::OperationInProgress(operation)), "{operation}: {reasons:?}");
        assert!(reasons.contains(&KeepReason::Unstaged(vec!["a".into()])), "{operation}: {reasons:?}");
        repo.git(&worktree.path, abort);
    }
    repo.git(&worktree.path, &["bisect", "start"]);
    assert!(repo.keep_reasons(&worktree).contains(&KeepReason::OperationInProgress("bisect")));
}

#[test]
fn only_submodules_with_unsaved_work_prevent_removal() {
    let repo = TestRepository::new();
    repo.git(repo.home(), &["clone", "--quiet", "--bare", "repo", "sub.git"]);
    let source = repo.home().join("sub.git");
    repo.git(&repo.repository, &["submodule", "--quiet", "add", path_str(&source), "part"]);
    repo.commit(&repo.repository, "a submodule");
    let worktree = repo.create_worktree();
    assert_eq!(repo.keep_reasons(&worktree), [], "the submodule is not checked out");
    repo.git(&worktree.path, &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(repo.keep_reasons(&worktree), []);
    let reasons = [KeepReason::Submodule("part".into())];
    write_file(&worktree.path.join("part/x.log"), "ignored in it");
    assert_kept(&repo, &worktree, &reasons);
    std::fs::remove_file(worktree.path.join("part/x.log")).unwrap();
    write_file(&worktree.path.join("part/a"), "more\n");
    repo.commit(&worktree.path.join("part"), "in the submodule");
    repo.git(&worktree.path.join("part"), &["switch", "--quiet", "--detach", "HEAD~1"]);
    assert_kept(&repo, &worktree, &reasons);
    repo.git(&worktree.path.join("part"), &["push", "--quiet", "origin", "HEAD@{1}:refs/heads/more"]);
    assert_eq!(repo.keep_reasons(&worktree), []);
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
    assert!(!worktree.path.exists());
}

#[test]
fn process_that_uses_the_worktree_prevents_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let mut cat = Command::new("cat");
    let mut child = cat.current_dir(&worktree.path).stdin(Stdio::piped()).spawn().unwrap();
    assert_kept(&repo, &worktree, &[KeepReason::InUse(vec![child.id()])]);
    child.kill().and_then(|()| child.wait()).unwrap();
    // A shell opens the file, not the test itself. If the test opened it, a process that another
    // test starts at this moment would inherit it.
    let mut writer = Command::new("sh");
    writer
        .args(["-c", "exec 3>>\"$0\"; echo open; exec cat", path_str(&worktree.path.join("a"))])
        .current_dir("/");
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    assert_kept(&repo, &worktree, &[KeepReason::InUse(vec![writer.id()])]);
    writer.kill().and_then(|()| writer.wait()).unwrap();
    assert_eq!(repo.keep_reasons(&worktree), []);
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
    assert!(canonicalize(&worktree.path).is_err());
}

#[test]
fn missing_worktree_counts_as_removed_only_if_git_does_not_list_it() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let worktrees_dir = worktree.path.parent().unwrap();
    let moved = repo.home().join("not mounted");
    #[allow(clippy::disallowed_methods, reason = "the directory belongs to the test")]
    let rename = |from: &Path, to: &Path| std::fs::rename(from, to).unwrap();
    rename(worktrees_dir, &moved);
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Kept(vec![KeepReason::PathMissing]));
    rename(&moved, worktrees_dir);
    assert_eq!(repo.keep_reasons(&worktree), []);
    // Without the repository it is unknown whether git lists the worktree.
    rename(worktrees_dir, &moved);
    rename(&repo.repository, &repo.home().join("elsewhere"));
    worktree.remove(&repo.git_environment()).unwrap_err();
    rename(&repo.home().join("elsewhere"), &repo.repository);
    repo.git(&repo.repository, &["worktree", "prune"]);
    assert_eq!(repo.remove(&worktree), RemoveOutcome::AlreadyGone);
}

#[test]
fn reason_is_one_line() {
    let names = ["a\nno worktree of yours", "\u{1b}[2J"];
    for name in names {
        let reasons = [
            KeepReason::Untracked(vec![name.into()]),
            KeepReason::Locked(name.into()),
            KeepReason::Submodule(name.into()),
            KeepReason::CheckFailed(name.into()),
        ];
        for reason in reasons.map(|reason| reason.to_string()) {
            assert!(!reason.chars().any(char::is_control), "{reason:?}");
        }
    }
}

#[allow(clippy::print_stderr, reason = "a skipped test must be visible in the output")]
fn report_skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Runs `mount` or `umount`. Returns false if the command fails, for example for a user who may not
/// mount.
fn run_mount(args: &[&str]) -> bool {
    Command::new(args[0]).args(&args[1..]).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn mounted_file_system_prevents_every_removal() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    // Without the mount, an ignored cache directory does not prevent the removal.
    write_file(&worktree.path.join("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    let (mounted_dir, mount) = (repo.directory.path().join("elsewhere"), worktree.path.join("cache/modules"));
    write_file(&mounted_dir.join("precious"), "x");
    std::fs::create_dir(&mount).unwrap();
    if !run_mount(&["mount", "--bind", path_str(&mounted_dir), path_str(&mount)]) {
        return report_skip("only a user who may mount can test mounts");
    }
    let mount = canonicalize(&mount).unwrap();
    assert_kept(&repo, &worktree, &[KeepReason::MountPoint(mount.clone())]);
    let saved = worktree.save(&repo.directory.path().join("trash"), &repo.git_environment());
    assert!(matches!(saved, Err(crate::Error::MountPoint { mount: found, .. }) if found == mount));
    assert!(mounted_dir.join("precious").exists());
    assert!(run_mount(&["umount", path_str(&mount)]));
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
}
