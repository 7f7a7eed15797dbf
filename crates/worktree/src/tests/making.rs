//! A worktree is made, found again, and is what was recorded.

use super::*;
use crate::{Error, Found, listed};
use std::os::unix::fs::symlink;
use std::thread::scope;
use std::time::Duration;

#[test]
fn it_lies_beside_the_repository_on_a_branch_of_its_own() {
    let ground = Ground::new();
    let plan = ground.plan(&ground.wanted(&ground.repository.join("sub")));
    assert_eq!(plan.tree.look().unwrap(), Found::Empty, "recorded before git fills it");
    let cwd = plan.add(&ground.surroundings()).unwrap();
    let beside = ground.home().canonicalize().unwrap().join("repo.worktrees/survey-ann");
    assert_eq!((&plan.tree.path, cwd), (&beside, beside.join("sub")));
    assert!(plan.tree.is_on_its_branch());
    assert_eq!(ground.git(&beside, &["branch", "--show-current"]), "teamd/survey/ann");
    assert_eq!(plan.tree.base, ground.git(&ground.repository, &["rev-parse", "HEAD"]));
    assert_eq!(ground.unsaved(&plan.tree), []);
    let listed = listed(&plan.tree.repository, &ground.surroundings()).unwrap();
    assert_eq!(listed[1].branch.as_deref(), Some("teamd/survey/ann"));
    assert_eq!(ground.remove(&plan.tree), Removed::Wholly);
    assert!(!beside.exists() && !beside.parent().unwrap().exists());
    assert_eq!(ground.git(&ground.repository, &["branch", "--list", "teamd/*"]), "");
    assert_eq!(ground.remove(&plan.tree), Removed::WasGone);
}

#[test]
fn a_branch_whose_worktree_is_gone_already_goes_if_it_would_have_gone_with_it() {
    for has_work in [false, true] {
        let ground = Ground::new();
        let tree = ground.tree();
        if has_work {
            put(&tree.path.join("new"), "x");
            ground.commit(&tree.path, "work");
            ground.git(&ground.repository, &["branch", "kept", "teamd/survey/ann"]);
        }
        ground.git(&ground.repository, &["worktree", "remove", text(&tree.path)]);
        assert_eq!(ground.remove(&tree), Removed::WasGone);
        let left = ground.git(&ground.repository, &["branch", "--list", "teamd/*"]);
        assert_eq!(!left.is_empty(), has_work, "{left}");
        assert!(!tree.path.parent().unwrap().exists());
    }
}

#[test]
fn whoever_comes_again_goes_on_in_it_and_anybody_else_has_another() {
    let ground = Ground::new();
    let tree = ground.tree();
    let known = Wanted { before: vec![tree.clone()], ..ground.wanted(&ground.repository) };
    let again = ground.plan(&known);
    assert!(again.is_there && again.tree == tree);
    assert_eq!(again.add(&ground.surroundings()).unwrap(), tree.path);
    let other = ground.plan(&ground.wanted(&ground.repository));
    assert!(!other.is_there);
    assert!(other.tree.path.ends_with("survey-ann-2") && other.tree.branch == "teamd/survey/ann-2");
    // Of another branch than the one that is asked for now.
    let named = ground.plan(&Wanted { branch: Some("topic".into()), ..known.clone() });
    assert!(!named.is_there);
    assert_eq!((named.tree.branch.as_str(), named.tree.new_branch), ("topic", true));
    ground.git(&tree.path, &["switch", "--quiet", "--create", "elsewhere"]);
    assert!(!ground.plan(&known).is_there, "it is on another branch now");
}

#[test]
fn a_branch_that_is_there_is_checked_out_if_it_is_free() {
    let ground = Ground::new();
    ground.git(&ground.repository, &["branch", "topic"]);
    let wanted = |branch: &str| Wanted { branch: Some(branch.into()), ..ground.wanted(&ground.repository) };
    let plan = ground.plan(&wanted("topic"));
    plan.add(&ground.surroundings()).unwrap();
    assert!(!plan.tree.new_branch && plan.tree.is_on_its_branch());
    for taken in ["topic", "main"] {
        let refused = crate::plan(&wanted(taken), &ground.surroundings()).unwrap_err();
        assert!(matches!(refused, Error::BranchTaken { .. }), "{refused}");
    }
    for bad in ["-x", "a..b", "@{-1}", "a b", "", "a~1"] {
        let refused = crate::plan(&wanted(bad), &ground.surroundings()).unwrap_err();
        assert!(matches!(refused, Error::BadBranch(_)), "{bad}: {refused}");
    }
    assert_eq!(ground.remove(&plan.tree), Removed::ButItsBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "topic"]);
}

#[test]
fn what_is_no_repository_or_has_no_commit_is_refused() {
    let ground = Ground::new();
    let (none, empty) = (ground.home().join("none"), ground.home().join("empty"));
    create_dir(&none).unwrap();
    ground.git(ground.home(), &["init", "--quiet", "empty"]);
    let refused = |cwd: &Path| plan(&ground.wanted(cwd), &ground.surroundings()).unwrap_err();
    assert!(matches!(refused(&none), Error::NoRepository(_)));
    assert!(matches!(refused(&empty), Error::NoCommit(_)));
    let nothing = Surroundings::of([("PATH", "/nowhere")]);
    let refused = plan(&ground.wanted(&ground.repository), &nothing).unwrap_err();
    assert!(matches!(refused, Error::NoGit), "{refused}");
}

#[test]
fn the_repository_may_have_any_name() {
    for name in ["with space", "quo'te\"$(x)`y`", "line\nend", "-dash", "ümlaut"] {
        let ground = Ground::named(name);
        let tree = ground.tree();
        put(&tree.path.join("new\nfile"), "x");
        let reasons = ground.unsaved(&tree);
        assert_eq!(reasons, [Reason::Untracked(vec!["new\nfile".into()])], "{name}");
        let trash = ground.home().join("trash/x");
        let saved = tree.save(&trash, &ground.surroundings()).unwrap();
        tree.discard(&saved, &ground.surroundings()).unwrap();
        assert!(!tree.path.exists(), "{name}");
    }
}

#[test]
fn a_bare_repository_a_worktree_a_submodule_and_a_sparse_checkout_do() {
    let ground = Ground::new();
    let home = ground.home().canonicalize().unwrap();
    ground.git(&home, &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bare = ground.plan(&ground.wanted(&home.join("bare.git")));
    assert_eq!(bare.add(&ground.surroundings()).unwrap(), home.join("bare.git.worktrees/survey-ann"));
    assert_eq!(ground.remove(&bare.tree), Removed::Wholly);

    let first = ground.tree();
    put(&first.path.join("a"), "of the worktree\n");
    ground.commit(&first.path, "in the worktree");
    let inner = ground.plan(&ground.wanted(&first.path.join("sub")));
    assert_eq!(inner.add(&ground.surroundings()).unwrap(), home.join("repo.worktrees/survey-ann-2/sub"));
    assert_eq!(inner.tree.base, ground.git(&first.path, &["rev-parse", "HEAD"]));

    ground.git(&home, &["init", "--quiet", "outer"]);
    ground.git(&home.join("outer"), &["submodule", "--quiet", "add", text(&ground.repository), "in"]);
    let nested = ground.plan(&ground.wanted(&home.join("outer/in")));
    assert_eq!(nested.tree.path, home.join("outer.worktrees/survey-ann"), "outside of the outer tree");

    ground.git(&ground.repository, &["sparse-checkout", "set", "sub"]);
    let sparse = ground.plan(&ground.wanted(&ground.repository));
    sparse.add(&ground.surroundings()).unwrap();
    assert_eq!(ground.unsaved(&sparse.tree), []);
    assert_eq!(ground.remove(&sparse.tree), Removed::Wholly);
}

#[test]
fn many_at_once_are_all_made() {
    let ground = Ground::new();
    let trees: Vec<Tree> = scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| made_apart(&ground))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for tree in &trees {
        assert!(tree.is_on_its_branch());
        assert_eq!(ground.remove(tree), Removed::Wholly);
    }
}

fn made_apart(ground: &Ground) -> Tree {
    let id = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let usual_branch = format!("teamd/survey/{id}x");
    let plan = ground.plan(&Wanted { usual_branch, ..ground.wanted(&ground.repository) });
    plan.add(&ground.surroundings()).unwrap();
    plan.tree
}

#[test]
fn the_users_hook_runs_and_its_no_stops_nothing() {
    let ground = Ground::new();
    let hook = ground.repository.join(".git/hooks/post-checkout");
    put(&hook, "#!/bin/sh\necho ran >\"$HOME/hooked\"\nexit 3\n");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tree = ground.tree();
    assert_eq!(read(&ground.home().join("hooked")), "ran\n");
    assert_eq!(ground.remove(&tree), Removed::Wholly);
}

#[test]
fn what_can_not_be_filled_is_taken_back() {
    let ground = Ground::new();
    let plan = ground.plan(&ground.wanted(&ground.repository));
    // A directory stands where the branch would go.
    ground.git(&ground.repository, &["branch", "teamd/survey/ann/in-the-way"]);
    let error = plan.add(&ground.surroundings()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(plan.tree.look().unwrap(), Found::Missing);
}

#[test]
fn a_branch_that_somebody_makes_meanwhile_stays() {
    let ground = Ground::new();
    let plans = [ground.plan(&ground.wanted(&ground.repository)), {
        let usual_branch = "teamd/survey/bob".to_owned();
        ground.plan(&Wanted { usual_branch, ..ground.wanted(&ground.repository) })
    }];
    for plan in &plans {
        ground.git(&ground.repository, &["branch", &plan.tree.branch]);
    }
    let error = plans[0].add(&ground.surroundings()).unwrap_err();
    assert!(matches!(error, Error::Git { .. }), "{error}");
    assert_eq!(plans[0].tree.look().unwrap(), Found::Missing);
    // And where nobody got as far as that.
    assert_eq!(ground.remove(&plans[1].tree), Removed::ButItsBranch);
    for plan in &plans {
        ground.git(&ground.repository, &["rev-parse", "--verify", &plan.tree.branch]);
    }
}

#[test]
fn nobody_waits_for_ever_for_the_repository() {
    let ground = Ground::new();
    let at = ground.repository.join(".git");
    let held = crate::add::alone(&at, Duration::ZERO).unwrap();
    let error = crate::add::alone(&at, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(held);
    crate::add::alone(&at, Duration::from_secs(60)).unwrap();
}

#[test]
fn only_the_recorded_directory_is_ever_touched() {
    let ground = Ground::new();
    let tree = ground.tree();
    let not_ours = |tree: &Tree| {
        let error = tree.remove(&ground.surroundings()).unwrap_err();
        assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    };
    // Somebody's directory: as a path in a file could say.
    let home = ground.home().join("treasure");
    put(&home.join("gold"), "x");
    not_ours(&Tree { path: home.clone(), ..tree.clone() });
    // The main worktree, and another directory in the place of ours.
    not_ours(&Tree { path: ground.repository.clone(), ..tree.clone() });
    not_ours(&Tree { inode: tree.inode + 1, ..tree.clone() });
    not_ours(&Tree { repository: home.clone(), ..tree.clone() });
    let moved = ground.home().join("moved");
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    std::fs::rename(&tree.path, &moved).unwrap();
    symlink(&moved, &tree.path).unwrap();
    not_ours(&tree);
    assert!(moved.join("a").exists() && home.join("gold").exists());
}
