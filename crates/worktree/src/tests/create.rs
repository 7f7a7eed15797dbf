//! A worktree is made, found again, and is what was recorded.

use super::*;
use crate::{Error, WorktreeState, list_worktrees};
use std::os::unix::fs::symlink;
use std::thread::scope;
use std::time::Duration;

#[test]
fn worktree_is_beside_the_repository_on_a_new_branch() {
    let ground = TestRepository::new();
    let plan = ground.propose(&ground.options(&ground.repository.join("sub")));
    assert_eq!(plan.record.state().unwrap(), WorktreeState::Empty, "recorded before git fills it");
    let cwd = plan.add(&ground.git_environment()).unwrap();
    let beside = ground.home().canonicalize().unwrap().join("repo.worktrees/survey-ann");
    assert_eq!((&plan.record.path, cwd), (&beside, beside.join("sub")));
    assert!(plan.record.is_on_its_branch());
    assert_eq!(ground.git(&beside, &["branch", "--show-current"]), "teamd/survey/ann");
    assert_eq!(plan.record.base_commit, ground.git(&ground.repository, &["rev-parse", "HEAD"]));
    assert_eq!(ground.keep_reasons(&plan.record), []);
    let listed = list_worktrees(&plan.record.common_git_dir, &ground.git_environment()).unwrap();
    assert_eq!(listed[1].branch.as_deref(), Some("teamd/survey/ann"));
    assert_eq!(ground.remove(&plan.record), RemoveOutcome::Removed);
    assert!(!beside.exists() && !beside.parent().unwrap().exists());
    assert_eq!(ground.git(&ground.repository, &["branch", "--list", "teamd/*"]), "");
    assert_eq!(ground.remove(&plan.record), RemoveOutcome::AlreadyGone);
}

#[test]
fn unused_branch_of_a_missing_worktree_is_deleted() {
    for has_work in [false, true] {
        let ground = TestRepository::new();
        let tree = ground.create_worktree();
        if has_work {
            write_file(&tree.path.join("new"), "x");
            ground.commit(&tree.path, "work");
            ground.git(&ground.repository, &["branch", "kept", "teamd/survey/ann"]);
        }
        ground.git(&ground.repository, &["worktree", "remove", path_str(&tree.path)]);
        assert_eq!(ground.remove(&tree), RemoveOutcome::AlreadyGone);
        let left = ground.git(&ground.repository, &["branch", "--list", "teamd/*"]);
        assert_eq!(!left.is_empty(), has_work, "{left}");
        assert!(!tree.path.parent().unwrap().exists());
    }
}

#[test]
fn previous_worktree_is_reused_only_by_its_member() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    let known = WorktreeOptions { previous: vec![tree.clone()], ..ground.options(&ground.repository) };
    let again = ground.propose(&known);
    assert!(again.exists && again.record == tree);
    assert_eq!(again.add(&ground.git_environment()).unwrap(), tree.path);
    let other = ground.propose(&ground.options(&ground.repository));
    assert!(!other.exists);
    assert!(other.record.path.ends_with("survey-ann-2") && other.record.branch == "teamd/survey/ann-2");
    // Of another branch than the one that is asked for now.
    let named = ground.propose(&WorktreeOptions { branch: Some("topic".into()), ..known.clone() });
    assert!(!named.exists);
    assert_eq!((named.record.branch.as_str(), named.record.branch_created), ("topic", true));
    ground.git(&tree.path, &["switch", "--quiet", "--create", "elsewhere"]);
    assert!(!ground.propose(&known).exists, "it is on another branch now");
}

#[test]
fn existing_free_branch_is_checked_out() {
    let ground = TestRepository::new();
    ground.git(&ground.repository, &["branch", "topic"]);
    let wanted =
        |branch: &str| WorktreeOptions { branch: Some(branch.into()), ..ground.options(&ground.repository) };
    let plan = ground.propose(&wanted("topic"));
    plan.add(&ground.git_environment()).unwrap();
    assert!(!plan.record.branch_created && plan.record.is_on_its_branch());
    for taken in ["topic", "main"] {
        let refused = crate::propose_worktree(&wanted(taken), &ground.git_environment()).unwrap_err();
        assert!(matches!(refused, Error::BranchTaken { .. }), "{refused}");
    }
    for bad in ["-x", "a..b", "@{-1}", "a b", "", "a~1"] {
        let refused = crate::propose_worktree(&wanted(bad), &ground.git_environment()).unwrap_err();
        assert!(matches!(refused, Error::InvalidBranch(_)), "{bad}: {refused}");
    }
    assert_eq!(ground.remove(&plan.record), RemoveOutcome::RemovedKeptBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "topic"]);
}

#[test]
fn missing_repository_or_commit_is_an_error() {
    let ground = TestRepository::new();
    let (none, empty) = (ground.home().join("none"), ground.home().join("empty"));
    create_dir(&none).unwrap();
    ground.git(ground.home(), &["init", "--quiet", "empty"]);
    let refused = |cwd: &Path| propose_worktree(&ground.options(cwd), &ground.git_environment()).unwrap_err();
    assert!(matches!(refused(&none), Error::NoRepository(_)));
    assert!(matches!(refused(&empty), Error::NoCommit(_)));
    let nothing = GitEnvironment::from_vars([("PATH", "/nowhere")]);
    let refused = propose_worktree(&ground.options(&ground.repository), &nothing).unwrap_err();
    assert!(matches!(refused, Error::NoGit), "{refused}");
}

#[test]
fn repository_can_have_any_name() {
    for name in ["with space", "quo'te\"$(x)`y`", "line\nend", "-dash", "ümlaut"] {
        let ground = TestRepository::with_name(name);
        let tree = ground.create_worktree();
        write_file(&tree.path.join("new\nfile"), "x");
        let reasons = ground.keep_reasons(&tree);
        assert_eq!(reasons, [KeepReason::Untracked(vec!["new\nfile".into()])], "{name}");
        let trash = ground.home().join("trash/x");
        let saved = tree.save(&trash, &ground.git_environment()).unwrap();
        tree.discard(&saved, &ground.git_environment()).unwrap();
        assert!(!tree.path.exists(), "{name}");
    }
}

#[test]
fn bare_nested_and_sparse_repositories_work() {
    let ground = TestRepository::new();
    let home = ground.home().canonicalize().unwrap();
    ground.git(&home, &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bare = ground.propose(&ground.options(&home.join("bare.git")));
    assert_eq!(bare.add(&ground.git_environment()).unwrap(), home.join("bare.git.worktrees/survey-ann"));
    assert_eq!(ground.remove(&bare.record), RemoveOutcome::Removed);

    let first = ground.create_worktree();
    write_file(&first.path.join("a"), "of the worktree\n");
    ground.commit(&first.path, "in the worktree");
    let inner = ground.propose(&ground.options(&first.path.join("sub")));
    assert_eq!(inner.add(&ground.git_environment()).unwrap(), home.join("repo.worktrees/survey-ann-2/sub"));
    assert_eq!(inner.record.base_commit, ground.git(&first.path, &["rev-parse", "HEAD"]));

    ground.git(&home, &["init", "--quiet", "outer"]);
    ground.git(&home.join("outer"), &["submodule", "--quiet", "add", path_str(&ground.repository), "in"]);
    let nested = ground.propose(&ground.options(&home.join("outer/in")));
    assert_eq!(nested.record.path, home.join("outer.worktrees/survey-ann"), "outside of the outer tree");

    ground.git(&ground.repository, &["sparse-checkout", "set", "sub"]);
    let sparse = ground.propose(&ground.options(&ground.repository));
    sparse.add(&ground.git_environment()).unwrap();
    assert_eq!(ground.keep_reasons(&sparse.record), []);
    assert_eq!(ground.remove(&sparse.record), RemoveOutcome::Removed);
}

#[test]
fn concurrent_worktrees_are_all_created() {
    let ground = TestRepository::new();
    let trees: Vec<WorktreeRecord> = scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| create_in_process(&ground))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for tree in &trees {
        assert!(tree.is_on_its_branch());
        assert_eq!(ground.remove(tree), RemoveOutcome::Removed);
    }
}

fn create_in_process(ground: &TestRepository) -> WorktreeRecord {
    let id = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let usual_branch = format!("teamd/survey/{id}x");
    let plan = ground
        .propose(&WorktreeOptions { default_branch: usual_branch, ..ground.options(&ground.repository) });
    plan.add(&ground.git_environment()).unwrap();
    plan.record
}

#[test]
fn failing_checkout_hook_is_ignored() {
    let ground = TestRepository::new();
    let hook = ground.repository.join(".git/hooks/post-checkout");
    write_file(&hook, "#!/bin/sh\necho ran >\"$HOME/hooked\"\nexit 3\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tree = ground.create_worktree();
    assert_eq!(read_file(&ground.home().join("hooked")), "ran\n");
    assert_eq!(ground.remove(&tree), RemoveOutcome::Removed);
}

#[test]
fn failed_add_is_undone() {
    let ground = TestRepository::new();
    let plan = ground.propose(&ground.options(&ground.repository));
    // A directory stands where the branch would go.
    ground.git(&ground.repository, &["branch", "teamd/survey/ann/in-the-way"]);
    let error = plan.add(&ground.git_environment()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(plan.record.state().unwrap(), WorktreeState::Missing);
}

#[test]
fn branch_created_meanwhile_is_kept() {
    let ground = TestRepository::new();
    let plans = [ground.propose(&ground.options(&ground.repository)), {
        let usual_branch = "teamd/survey/bob".to_owned();
        ground
            .propose(&WorktreeOptions { default_branch: usual_branch, ..ground.options(&ground.repository) })
    }];
    for plan in &plans {
        ground.git(&ground.repository, &["branch", &plan.record.branch]);
    }
    let error = plans[0].add(&ground.git_environment()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(plans[0].record.state().unwrap(), WorktreeState::Missing);
    // And where nobody got as far as that.
    assert_eq!(ground.remove(&plans[1].record), RemoveOutcome::RemovedKeptBranch);
    for plan in &plans {
        ground.git(&ground.repository, &["rev-parse", "--verify", &plan.record.branch]);
    }
}

#[test]
fn repository_lock_times_out() {
    let ground = TestRepository::new();
    let at = ground.repository.join(".git");
    let held = crate::add::lock_repository(&at, Duration::ZERO).unwrap();
    let error = crate::add::lock_repository(&at, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::RepositoryBusy { .. }), "{error}");
    drop(held);
    crate::add::lock_repository(&at, Duration::from_secs(60)).unwrap();
}

#[test]
fn only_the_recorded_directory_is_touched() {
    let ground = TestRepository::new();
    let tree = ground.create_worktree();
    let not_ours = |tree: &WorktreeRecord| {
        let error = tree.remove(&ground.git_environment()).unwrap_err();
        assert!(matches!(error, Error::NotRecorded { .. }), "{error}");
    };
    // Somebody's directory: as a path in a file could say.
    let home = ground.home().join("treasure");
    write_file(&home.join("gold"), "x");
    not_ours(&WorktreeRecord { path: home.clone(), ..tree.clone() });
    // The main worktree, and another directory in the place of ours.
    not_ours(&WorktreeRecord { path: ground.repository.clone(), ..tree.clone() });
    not_ours(&WorktreeRecord { inode: tree.inode + 1, ..tree.clone() });
    not_ours(&WorktreeRecord { common_git_dir: home.clone(), ..tree.clone() });
    let moved = ground.home().join("moved");
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    std::fs::rename(&tree.path, &moved).unwrap();
    symlink(&moved, &tree.path).unwrap();
    not_ours(&tree);
    assert!(moved.join("a").exists() && home.join("gold").exists());
}
