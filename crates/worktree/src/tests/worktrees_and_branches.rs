//! Worktrees and their branches are created and reused, and only recorded ones are changed.

use super::*;
use crate::{Error, WorktreeState, list_worktrees};
use std::os::unix::fs::symlink;
use std::thread::scope;
use std::time::Duration;

#[test]
fn worktree_is_beside_the_repository_on_a_new_branch() {
    let repo = TestRepository::new();
    let proposal = repo.propose(&repo.options(&repo.repository.join("sub")));
    assert_eq!(
        proposal.record.state().unwrap(),
        WorktreeState::Empty,
        "the directory is recorded before git fills it"
    );
    let cwd = proposal.add(&repo.git_environment()).unwrap();
    let path = repo.home().canonicalize().unwrap().join("repo.worktrees/survey-ann");
    assert_eq!((&proposal.record.path, cwd), (&path, path.join("sub")));
    assert!(proposal.record.is_on_its_branch());
    assert_eq!(repo.git(&path, &["branch", "--show-current"]), "teamd/survey/ann");
    assert_eq!(proposal.record.base_commit, repo.git(&repo.repository, &["rev-parse", "HEAD"]));
    assert_eq!(repo.keep_reasons(&proposal.record), []);
    let worktrees = list_worktrees(&proposal.record.common_git_dir, &repo.git_environment()).unwrap();
    assert_eq!(worktrees[1].branch.as_deref(), Some("teamd/survey/ann"));
    assert_eq!(repo.remove(&proposal.record), RemoveOutcome::Removed);
    assert!(!path.exists() && !path.parent().unwrap().exists());
    assert_eq!(repo.git(&repo.repository, &["branch", "--list", "teamd/*"]), "");
    assert_eq!(repo.remove(&proposal.record), RemoveOutcome::AlreadyGone);
}

/// Another git process has created the file `commondir` of its worktree, and writes it only when git
/// has read the empty file.
#[test]
fn git_waits_for_a_worktree_that_another_process_creates() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let git_dir = worktree.private_git_dir().unwrap();
    let (file, written) = (git_dir.join("commondir"), git_dir.join("written"));
    rustix::fs::rename(&file, &written).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    scope(|threads| {
        threads.spawn(|| {
            let pipe = std::fs::File::options().write(true).open(&file).unwrap();
            rustix::fs::rename(&written, &file).unwrap();
            drop(pipe);
        });
        let worktrees = list_worktrees(&worktree.common_git_dir, &repo.git_environment());
        assert_eq!(worktrees.unwrap().len(), 2);
    });
}

#[test]
fn branch_of_a_missing_worktree_is_deleted_unless_it_has_work() {
    for has_work in [false, true] {
        let repo = TestRepository::new();
        let worktree = repo.create_worktree();
        if has_work {
            write_file(&worktree.path.join("new"), "x");
            repo.commit(&worktree.path, "work");
        }
        repo.git(&repo.repository, &["worktree", "remove", path_str(&worktree.path)]);
        assert_eq!(repo.remove(&worktree), RemoveOutcome::AlreadyGone);
        assert_eq!(repo.teamd_branches().is_empty(), !has_work);
        assert!(!worktree.path.parent().unwrap().exists());
    }
}

#[test]
fn merged_branch_is_deleted_and_the_next_worktree_gets_its_name() {
    let repo = TestRepository::new();
    repo.git(&repo.repository, &["switch", "--quiet", "--create", "release"]);
    for night in ["first\n", "second\n"] {
        let worktree = repo.create_worktree();
        assert_eq!(worktree.branch, "teamd/survey/ann");
        write_file(&worktree.path.join("a"), night);
        repo.commit(&worktree.path, "work");
        repo.git(&repo.repository, &["merge", "--quiet", "teamd/survey/ann"]);
        // The branch is merged, but not into the HEAD of the main worktree.
        repo.git(&repo.repository, &["switch", "--quiet", "main"]);
        assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
        assert_eq!(repo.teamd_branches(), "");
        repo.git(&repo.repository, &["switch", "--quiet", "release"]);
        assert_eq!(read_file(&repo.repository.join("a")), night);
    }
}

#[test]
fn branch_of_a_discarded_worktree_gets_another_name() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    write_file(&worktree.path.join("a"), "discarded\n");
    repo.commit(&worktree.path, "discarded");
    let discarded = repo.git(&worktree.path, &["rev-parse", "HEAD"]);
    let (trash, environment) = (repo.home().join("trash/survey-ann-1"), repo.git_environment());
    let saved = worktree.save(&trash, &environment).unwrap();
    assert_eq!(worktree.discard(&saved, &environment).unwrap(), RemoveOutcome::RemovedKeptBranch);
    assert_eq!(repo.git(&repo.repository, &["rev-parse", "teamd-trash/survey-ann-1"]), discarded);
    assert!(
        saved.restore_instructions.contains("teamd-trash/survey-ann-1"),
        "{}",
        saved.restore_instructions
    );
    let next = repo.create_worktree();
    assert_eq!(next.branch, "teamd/survey/ann");
    // The merged commit is unpushed, because a branch below `teamd-trash/` does not count as a
    // copy.
    repo.git(&next.path, &["merge", "--quiet", "teamd-trash/survey-ann-1"]);
    assert_eq!(repo.keep_reasons(&next), [KeepReason::Unpushed(1)]);
}

#[test]
fn discarded_branch_of_the_user_keeps_its_name() {
    let repo = TestRepository::new();
    repo.git(&repo.repository, &["branch", "topic"]);
    let options = WorktreeOptions { branch: Some("topic".into()), ..repo.options(&repo.repository) };
    let proposal = repo.propose(&options);
    proposal.add(&repo.git_environment()).unwrap();
    let worktree = proposal.record;
    write_file(&worktree.path.join("a"), "more\n");
    repo.commit(&worktree.path, "more");
    let saved = worktree.save(&repo.home().join("trash/x"), &repo.git_environment()).unwrap();
    worktree.discard(&saved, &repo.git_environment()).unwrap();
    repo.git(&repo.repository, &["rev-parse", "--verify", "topic"]);
    assert!(!saved.restore_instructions.contains("teamd-trash"), "{}", saved.restore_instructions);
}

#[test]
fn previous_worktree_is_reused_only_by_its_member() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let options = WorktreeOptions { previous: vec![worktree.clone()], ..repo.options(&repo.repository) };
    let reused = repo.propose(&options);
    assert!(reused.exists && reused.record == worktree);
    assert_eq!(reused.add(&repo.git_environment()).unwrap(), worktree.path);
    let new = repo.propose(&repo.options(&repo.repository));
    assert!(!new.exists);
    assert!(new.record.path.ends_with("survey-ann-2") && new.record.branch == "teamd/survey/ann-2");
    // The options request another branch than that of the earlier worktree.
    let on_topic = repo.propose(&WorktreeOptions { branch: Some("topic".into()), ..options.clone() });
    assert!(!on_topic.exists);
    assert_eq!((on_topic.record.branch.as_str(), on_topic.record.branch_created), ("topic", true));
    repo.git(&worktree.path, &["switch", "--quiet", "--create", "elsewhere"]);
    assert!(!repo.propose(&options).exists, "the earlier worktree is on another branch");
}

#[test]
fn existing_free_branch_is_checked_out() {
    let repo = TestRepository::new();
    repo.git(&repo.repository, &["branch", "topic"]);
    let options =
        |branch: &str| WorktreeOptions { branch: Some(branch.into()), ..repo.options(&repo.repository) };
    let proposal = repo.propose(&options("topic"));
    proposal.add(&repo.git_environment()).unwrap();
    assert!(!proposal.record.branch_created && proposal.record.is_on_its_branch());
    for branch in ["topic", "main"] {
        let error = crate::propose_worktree(&options(branch), &repo.git_environment()).unwrap_err();
        assert!(matches!(error, Error::BranchTaken { .. }), "{error}");
    }
    for name in ["-x", "a..b", "@{-1}", "a b", "", "a~1"] {
        let error = crate::propose_worktree(&options(name), &repo.git_environment()).unwrap_err();
        assert!(matches!(error, Error::InvalidBranch(_)), "{name}: {error}");
    }
    assert_eq!(repo.remove(&proposal.record), RemoveOutcome::RemovedKeptBranch);
    repo.git(&repo.repository, &["rev-parse", "--verify", "topic"]);
}

#[test]
fn error_names_the_branch_that_blocks_a_new_branch() {
    let repo = TestRepository::new();
    let options = repo.options(&repo.repository);
    let below = format!("{}/x", options.default_branch);
    for blocking in ["teamd", &below] {
        repo.git(&repo.repository, &["branch", blocking]);
        let named = WorktreeOptions { branch: Some(options.default_branch.clone()), ..options.clone() };
        for options in [&options, &named] {
            let error = crate::propose_worktree(options, &repo.git_environment()).unwrap_err();
            assert!(
                matches!(&error, Error::BranchBlocked { obstacle, .. } if obstacle == blocking),
                "{error}"
            );
        }
        assert!(!repo.repository.with_extension("worktrees").exists(), "no directory is created");
        repo.git(&repo.repository, &["branch", "-D", blocking]);
    }
}

#[test]
fn directory_for_worktrees_must_be_the_users_own() {
    let repo = TestRepository::new();
    let (directory, elsewhere) = (repo.repository.with_extension("worktrees"), repo.home().join("elsewhere"));
    create_dir(&elsewhere).unwrap();
    let assert_refused = |reason: &str| {
        let error = propose_worktree(&repo.options(&repo.repository), &repo.git_environment()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    };
    symlink(&elsewhere, &directory).unwrap();
    assert_refused("it is a symbolic link");
    std::fs::remove_file(&directory).unwrap();
    create_dir(&directory).unwrap();
    for (mode, reason) in [(0o777, "other users can write there"), (0o2775, "its group can write there")] {
        std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        assert_refused(reason);
    }
    std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Only root can give the directory to another user.
    if std::os::unix::fs::chown(&directory, Some(12345), None).is_ok() {
        assert_refused("it belongs to the user 12345");
        std::os::unix::fs::chown(&directory, Some(0), None).unwrap();
    }
    assert!(!repo.propose(&repo.options(&repo.repository)).exists);
}

#[test]
fn missing_repository_or_commit_is_an_error() {
    let repo = TestRepository::new();
    let (no_repository, no_commit) = (repo.home().join("none"), repo.home().join("empty"));
    create_dir(&no_repository).unwrap();
    repo.git(repo.home(), &["init", "--quiet", "empty"]);
    let propose_error =
        |cwd: &Path| propose_worktree(&repo.options(cwd), &repo.git_environment()).unwrap_err();
    assert!(matches!(propose_error(&no_repository), Error::NoRepository(_)));
    assert!(matches!(propose_error(&no_commit), Error::NoCommit(_)));
    let no_path = GitEnvironment::from_vars([("PATH", "/nowhere")]);
    let error = propose_worktree(&repo.options(&repo.repository), &no_path).unwrap_err();
    assert!(matches!(error, Error::NoGit), "{error}");
}

#[test]
fn repository_can_have_any_name() {
    for name in ["with space", "quo'te\"$(x)`y`", "line\nend", "-dash", "ümlaut"] {
        let repo = TestRepository::with_name(name);
        let worktree = repo.create_worktree();
        write_file(&worktree.path.join("new\nfile"), "x");
        let reasons = repo.keep_reasons(&worktree);
        assert_eq!(reasons, [KeepReason::Untracked(vec!["new\nfile".into()])], "{name}");
        let trash = repo.home().join("trash/x");
        let saved = worktree.save(&trash, &repo.git_environment()).unwrap();
        worktree.discard(&saved, &repo.git_environment()).unwrap();
        assert!(!worktree.path.exists(), "{name}");
    }
}

#[test]
fn bare_nested_and_sparse_repositories_work() {
    let repo = TestRepository::new();
    let home = repo.home().canonicalize().unwrap();
    repo.git(&home, &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bare = repo.propose(&repo.options(&home.join("bare.git")));
    assert_eq!(bare.add(&repo.git_environment()).unwrap(), home.join("bare.git.worktrees/survey-ann"));
    assert_eq!(repo.remove(&bare.record), RemoveOutcome::Removed);

    let first = repo.create_worktree();
    write_file(&first.path.join("a"), "of the worktree\n");
    repo.commit(&first.path, "in the worktree");
    let from_worktree = repo.propose(&repo.options(&first.path.join("sub")));
    assert_eq!(
        from_worktree.add(&repo.git_environment()).unwrap(),
        home.join("repo.worktrees/survey-ann-2/sub")
    );
    assert_eq!(from_worktree.record.base_commit, repo.git(&first.path, &["rev-parse", "HEAD"]));

    repo.git(&home, &["init", "--quiet", "outer"]);
    repo.git(&home.join("outer"), &["submodule", "--quiet", "add", path_str(&repo.repository), "in"]);
    let nested = repo.propose(&repo.options(&home.join("outer/in")));
    assert_eq!(
        nested.record.path,
        home.join("outer.worktrees/survey-ann"),
        "the worktree is outside of the outer working tree"
    );

    repo.git(&repo.repository, &["sparse-checkout", "set", "sub"]);
    let sparse = repo.propose(&repo.options(&repo.repository));
    sparse.add(&repo.git_environment()).unwrap();
    assert_eq!(repo.keep_reasons(&sparse.record), []);
    assert_eq!(repo.remove(&sparse.record), RemoveOutcome::Removed);
}

#[test]
fn concurrent_worktrees_are_all_created() {
    let repo = TestRepository::new();
    let worktrees: Vec<WorktreeRecord> = scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| create_with_own_branch(&repo))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for worktree in &worktrees {
        assert!(worktree.is_on_its_branch());
        assert_eq!(repo.remove(worktree), RemoveOutcome::Removed);
    }
}

/// Creates a worktree whose branch is named after the current thread.
fn create_with_own_branch(repo: &TestRepository) -> WorktreeRecord {
    let id = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let default_branch = format!("teamd/survey/{id}x");
    let proposal = repo.propose(&WorktreeOptions { default_branch, ..repo.options(&repo.repository) });
    proposal.add(&repo.git_environment()).unwrap();
    proposal.record
}

#[test]
fn failing_checkout_hook_is_ignored() {
    let repo = TestRepository::new();
    let hook = repo.repository.join(".git/hooks/post-checkout");
    write_file(&hook, "#!/bin/sh\necho ran >\"$HOME/hooked\"\nexit 3\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let worktree = repo.create_worktree();
    assert_eq!(read_file(&repo.home().join("hooked")), "ran\n");
    assert_eq!(repo.remove(&worktree), RemoveOutcome::Removed);
}

#[test]
fn failed_add_is_undone() {
    let repo = TestRepository::new();
    let proposal = repo.propose(&repo.options(&repo.repository));
    // The branch can't be created, because another branch uses its name as a directory.
    repo.git(&repo.repository, &["branch", "teamd/survey/ann/in-the-way"]);
    let error = proposal.add(&repo.git_environment()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(proposal.record.state().unwrap(), WorktreeState::Missing);
}

#[test]
fn missing_filter_program_is_named_and_the_failed_worktree_leaves_no_branch() {
    let repo = TestRepository::new();
    for (name, value) in [("smudge", "git-xlfs smudge -- %f"), ("clean", "cat"), ("required", "true")] {
        repo.git(repo.home(), &["config", "--global", &format!("filter.xlfs.{name}"), value]);
    }
    write_file(&repo.repository.join(".gitattributes"), "a filter=xlfs\n");
    repo.commit(&repo.repository, "a filter");
    for _ in 0..2 {
        let proposal = repo.propose(&repo.options(&repo.repository));
        assert_eq!(proposal.record.branch, "teamd/survey/ann");
        let error = proposal.add(&repo.git_environment()).unwrap_err();
        assert!(matches!(&error, Error::ProgramMissing { program, .. } if program == "git-xlfs"), "{error}");
        assert_eq!(repo.teamd_branches(), "");
        assert!(!proposal.record.path.parent().unwrap().exists());
    }
}

#[test]
fn branch_created_meanwhile_is_kept() {
    let repo = TestRepository::new();
    let proposals = [repo.propose(&repo.options(&repo.repository)), {
        let default_branch = "teamd/survey/bob".to_owned();
        repo.propose(&WorktreeOptions { default_branch, ..repo.options(&repo.repository) })
    }];
    for proposal in &proposals {
        repo.git(&repo.repository, &["branch", &proposal.record.branch]);
    }
    let error = proposals[0].add(&repo.git_environment()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(proposals[0].record.state().unwrap(), WorktreeState::Missing);
    // A branch that another program has created stays even if `add` was never called.
    assert_eq!(repo.remove(&proposals[1].record), RemoveOutcome::RemovedKeptBranch);
    for proposal in &proposals {
        repo.git(&repo.repository, &["rev-parse", "--verify", &proposal.record.branch]);
    }
}

#[test]
fn repository_lock_times_out() {
    let repo = TestRepository::new();
    let git_dir = repo.repository.join(".git");
    let lock = crate::add_worktree::lock_repository(&git_dir, Duration::ZERO).unwrap();
    let error = crate::add_worktree::lock_repository(&git_dir, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::RepositoryBusy { .. }), "{error}");
    drop(lock);
    crate::add_worktree::lock_repository(&git_dir, Duration::from_secs(60)).unwrap();
}

#[test]
fn only_the_recorded_directory_is_touched() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let assert_rejected = |worktree: &WorktreeRecord| {
        let error = worktree.remove(&repo.git_environment()).unwrap_err();
        assert!(matches!(error, Error::NotRecorded { .. }), "{error}");
    };
    // A changed record may have the path of a user's directory.
    let user_dir = repo.home().join("user-dir");
    write_file(&user_dir.join("file"), "x");
    assert_rejected(&WorktreeRecord { path: user_dir.clone(), ..worktree.clone() });
    // The path of the main worktree, another inode, and another repository are rejected too.
    assert_rejected(&WorktreeRecord { path: repo.repository.clone(), ..worktree.clone() });
    assert_rejected(&WorktreeRecord { inode: worktree.inode + 1, ..worktree.clone() });
    assert_rejected(&WorktreeRecord { common_git_dir: user_dir.clone(), ..worktree.clone() });
    let moved = repo.home().join("moved");
    #[allow(clippy::disallowed_methods, reason = "the directory belongs to the test")]
    rustix::fs::rename(&worktree.path, &moved).unwrap();
    symlink(&moved, &worktree.path).unwrap();
    assert_rejected(&worktree);
    assert!(moved.join("a").exists() && user_dir.join("file").exists());
}

#[test]
fn progress_of_a_branch_counts_its_own_and_its_unmerged_commits() {
    let repo = TestRepository::new();
    let worktree = repo.create_worktree();
    let progress = || worktree.branch_progress(&repo.git_environment()).unwrap().unwrap();
    let subjects = |progress: &crate::BranchProgress| -> Vec<String> {
        progress.commits.iter().map(|commit| commit.subject.clone()).collect()
    };
    assert_eq!((progress().commits, progress().target, progress().unmerged), (vec![], "main".to_owned(), 0));
    for subject in ["one", "two words"] {
        write_file(&worktree.path.join("a"), subject);
        repo.commit(&worktree.path, subject);
    }
    let unmerged = progress();
    assert_eq!((subjects(&unmerged), unmerged.unmerged), (vec!["two words".into(), "one".into()], 2));
    assert!(unmerged.commits.iter().all(|commit| commit.committed_at > 1_600_000_000_000), "{unmerged:?}");
    repo.git(&repo.repository, &["merge", "--quiet", "teamd/survey/ann"]);
    assert_eq!((progress().commits.len(), progress().unmerged), (2, 0), "merged work is still work");
    repo.git(&repo.repository, &["checkout", "--quiet", "--detach"]);
    let detached = progress();
    assert_eq!((detached.target.as_str(), detached.unmerged), (&worktree.base_commit[..12], 2));
    write_file(&worktree.path.join("new"), "x");
    let reasons = worktree.uncommitted_reasons(&repo.git_environment()).unwrap();
    assert_eq!(reasons, [KeepReason::Untracked(vec!["new".into()])]);
    repo.git(&repo.repository, &["worktree", "remove", "--force", path_str(&worktree.path)]);
    assert_eq!(progress().commits.len(), 2, "the branch outlives the worktree");
    repo.git(&repo.repository, &["branch", "--quiet", "-D", "teamd/survey/ann"]);
    assert_eq!(worktree.branch_progress(&repo.git_environment()).unwrap(), None);
}
