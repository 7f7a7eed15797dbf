//! Every kind of unsaved work is seen, and then nothing is removed.

use super::*;
use std::fs::canonicalize;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Just these reasons, and git does not get to remove it.
fn keeps(ground: &Ground, tree: &Tree, reasons: &[Reason]) {
    assert_eq!(ground.unsaved(tree), reasons);
    assert_eq!(ground.remove(tree), Removed::Not(reasons.to_vec()));
    assert!(tree.path.join(".git").exists());
}

#[test]
fn staged_and_unstaged_and_untracked_and_ignored() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "other\n");
    keeps(&ground, &tree, &[Reason::Unstaged(vec!["a".into()])]);
    ground.git(&tree.path, &["add", "a"]);
    keeps(&ground, &tree, &[Reason::Staged(vec!["a".into()])]);
    ground.git(&tree.path, &["reset", "--quiet", "--hard"]);
    put(&tree.path.join("deep/new"), "x");
    keeps(&ground, &tree, &[Reason::Untracked(vec!["deep/new".into()])]);
    ground.git(&tree.path, &["clean", "--quiet", "-fd"]);
    put(&tree.path.join("x.log"), "x");
    put(&tree.path.join("kept/x"), "x");
    keeps(&ground, &tree, &[Reason::Ignored(vec!["kept/".into(), "x.log".into()])]);
    assert_eq!(ground.unsaved(&tree)[0].to_string(), "ignored: kept/, x.log");
}

#[test]
fn settings_of_the_users_hide_nothing() {
    let ground = Ground::new();
    let tree = ground.tree();
    ground.git(&tree.path, &["config", "status.showUntrackedFiles", "no"]);
    ground.git(&tree.path, &["config", "core.quotePath", "true"]);
    put(&tree.path.join("nëw"), "x");
    keeps(&ground, &tree, &[Reason::Untracked(vec!["nëw".into()])]);
}

#[test]
fn a_directory_that_says_that_it_is_a_cache_is_no_work() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("cache/deep/object"), "x");
    keeps(&ground, &tree, &[Reason::Ignored(vec!["cache/".into()])]);
    put(&tree.path.join("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    assert_eq!(ground.unsaved(&tree), []);
    assert_eq!(ground.remove(&tree), Removed::Wholly);
}

#[test]
fn files_that_git_was_told_not_to_look_at() {
    let ground = Ground::new();
    let tree = ground.tree();
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        ground.git(&tree.path, &["update-index", flag, "a"]);
        put(&tree.path.join("a"), "hidden\n");
        keeps(&ground, &tree, &[Reason::Hidden(vec!["a".into()])]);
    }
}

#[test]
fn commits_that_are_nowhere_else() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    keeps(&ground, &tree, &[Reason::Unpushed(1)]);
    // On a branch that stays.
    ground.git(&ground.repository, &["merge", "--quiet", "teamd/survey/ann"]);
    assert_eq!(ground.unsaved(&tree), []);
    put(&tree.path.join("a"), "and more\n");
    ground.commit(&tree.path, "and more");
    ground.remote();
    ground.git(&tree.path, &["push", "--quiet", "origin", "HEAD"]);
    assert_eq!(ground.unsaved(&tree), [], "its remote has it");
    assert_eq!(ground.remove(&tree), Removed::ButItsBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann"]);
}

#[test]
fn commits_with_a_remote_that_has_not_got_them() {
    let ground = Ground::new();
    ground.remote();
    let tree = ground.tree();
    put(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    keeps(&ground, &tree, &[Reason::Unpushed(1)]);
    // On a branch that it has made itself.
    ground.git(&tree.path, &["switch", "--quiet", "--create", "topic"]);
    keeps(&ground, &tree, &[Reason::Unpushed(1)]);
}

#[test]
fn a_detached_head() {
    let ground = Ground::new();
    let tree = ground.tree();
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    assert_eq!(ground.unsaved(&tree), [], "nothing is on it");
    put(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    keeps(&ground, &tree, &[Reason::Detached(1)]);
    ground.git(&tree.path, &["switch", "--quiet", "teamd/survey/ann"]);
    keeps(&ground, &tree, &[Reason::Abandoned(1)]);
}

#[test]
fn commits_that_were_taken_back_keep_the_branch_whose_log_has_them() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "more\n");
    ground.commit(&tree.path, "more");
    ground.git(&tree.path, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(ground.unsaved(&tree), [], "the log of the branch has it");
    assert_eq!(ground.remove(&tree), Removed::ButItsBranch);
    ground.git(&ground.repository, &["rev-parse", "--verify", "teamd/survey/ann@{1}"]);
}

#[test]
fn stashes_that_were_made_in_it() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&ground.repository.join("a"), "of the main one\n");
    ground.git(&ground.repository, &["stash", "--quiet"]);
    assert_eq!(ground.unsaved(&tree), [], "it is somebody else's");
    for message in [&["stash", "--quiet"][..], &["stash", "push", "--quiet", "--message", "x: y"]] {
        put(&tree.path.join("a"), "stashed\n");
        ground.git(&tree.path, message);
    }
    keeps(&ground, &tree, &[Reason::Stashed(2)]);
    ground.git(&tree.path, &["switch", "--quiet", "--detach"]);
    put(&tree.path.join("a"), "stashed on no branch\n");
    ground.git(&tree.path, &["stash", "--quiet"]);
    keeps(&ground, &tree, &[Reason::Stashed(3)]);
}

#[test]
fn locks_of_people_and_of_git() {
    let ground = Ground::new();
    let tree = ground.tree();
    ground.git(&ground.repository, &["worktree", "lock", "--reason", "mine", text(&tree.path)]);
    keeps(&ground, &tree, &[Reason::Locked("mine".into())]);
    ground.git(&ground.repository, &["worktree", "unlock", text(&tree.path)]);
    let lock = tree.repository.join("worktrees/survey-ann/index.lock");
    put(&lock, "");
    keeps(&ground, &tree, &[Reason::Busy(lock)]);
}

#[test]
fn in_the_middle_of_something() {
    let ground = Ground::new();
    let tree = ground.tree();
    put(&tree.path.join("a"), "mine\n");
    ground.commit(&tree.path, "mine");
    put(&ground.repository.join("a"), "theirs\n");
    ground.commit(&ground.repository, "theirs");
    for (begin, what, end) in [
        (&["rebase", "main"][..], "rebase", &["rebase", "--abort"][..]),
        (&["merge", "main"], "merge", &["merge", "--abort"]),
        (&["cherry-pick", "main"], "cherry-pick", &["cherry-pick", "--abort"]),
    ] {
        assert!(!ground.ran(&tree.path, begin).status.success(), "a conflict");
        let reasons = ground.unsaved(&tree);
        assert!(reasons.contains(&Reason::Midway(what)), "{what}: {reasons:?}");
        assert!(reasons.contains(&Reason::Unstaged(vec!["a".into()])), "{what}: {reasons:?}");
        ground.git(&tree.path, end);
    }
    ground.git(&tree.path, &["bisect", "start"]);
    assert!(ground.unsaved(&tree).contains(&Reason::Midway("bisect")));
}

#[test]
fn a_submodule_with_work_and_one_without() {
    let ground = Ground::new();
    ground.git(ground.home(), &["clone", "--quiet", "--bare", "repo", "sub.git"]);
    let from = ground.home().join("sub.git");
    ground.git(&ground.repository, &["submodule", "--quiet", "add", text(&from), "part"]);
    ground.commit(&ground.repository, "a submodule");
    let tree = ground.tree();
    assert_eq!(ground.unsaved(&tree), [], "it is not checked out");
    ground.git(&tree.path, &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(ground.unsaved(&tree), []);
    let work = [Reason::Submodule("part".into())];
    put(&tree.path.join("part/x.log"), "ignored in it");
    keeps(&ground, &tree, &work);
    std::fs::remove_file(tree.path.join("part/x.log")).unwrap();
    put(&tree.path.join("part/a"), "more\n");
    ground.commit(&tree.path.join("part"), "in the submodule");
    ground.git(&tree.path.join("part"), &["switch", "--quiet", "--detach", "HEAD~1"]);
    keeps(&ground, &tree, &work);
    ground.git(&tree.path.join("part"), &["push", "--quiet", "origin", "HEAD@{1}:refs/heads/more"]);
    assert_eq!(ground.unsaved(&tree), []);
    assert_eq!(ground.remove(&tree), Removed::Wholly);
    assert!(!tree.path.exists());
}

#[test]
fn a_process_in_it() {
    let ground = Ground::new();
    let tree = ground.tree();
    let mut sleeper = Command::new("cat");
    let mut inside = sleeper.current_dir(&tree.path).stdin(Stdio::piped()).spawn().unwrap();
    keeps(&ground, &tree, &[Reason::InUse(vec![inside.id()])]);
    inside.kill().and_then(|()| inside.wait()).unwrap();
    // Opened by itself: a file that we had open would be seen in whatever another test starts just now.
    let mut writer = Command::new("sh");
    writer.args(["-c", "exec 3>>\"$0\"; echo open; exec cat", text(&tree.path.join("a"))]).current_dir("/");
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    keeps(&ground, &tree, &[Reason::InUse(vec![writer.id()])]);
    writer.kill().and_then(|()| writer.wait()).unwrap();
    assert_eq!(ground.unsaved(&tree), []);
    assert_eq!(ground.remove(&tree), Removed::Wholly);
    assert!(canonicalize(&tree.path).is_err());
}

#[test]
fn what_is_not_there_is_gone_only_if_git_says_so_too() {
    let ground = Ground::new();
    let tree = ground.tree();
    let beside = tree.path.parent().unwrap();
    let away = ground.home().join("not mounted");
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    let moved = |from: &Path, to: &Path| std::fs::rename(from, to).unwrap();
    moved(beside, &away);
    assert_eq!(ground.remove(&tree), Removed::Not(vec![Reason::NotThere]));
    moved(&away, beside);
    assert_eq!(ground.unsaved(&tree), []);
    // The repository with it: nobody knows anything.
    moved(beside, &away);
    moved(&ground.repository, &ground.home().join("elsewhere"));
    tree.remove(&ground.surroundings()).unwrap_err();
    moved(&ground.home().join("elsewhere"), &ground.repository);
    ground.git(&ground.repository, &["worktree", "prune"]);
    assert_eq!(ground.remove(&tree), Removed::WasGone);
}

#[test]
fn a_reason_is_one_line() {
    let names = ["a\nno worktree of yours", "\u{1b}[2J"];
    for name in names {
        let all = [
            Reason::Untracked(vec![name.into()]),
            Reason::Locked(name.into()),
            Reason::Submodule(name.into()),
            Reason::Unknown(name.into()),
        ];
        for reason in all.map(|reason| reason.to_string()) {
            assert!(!reason.chars().any(char::is_control), "{reason:?}");
        }
    }
}
