//! Branches are merged in a worktree of their own, into a branch that is checked out nowhere.

use super::*;
use crate::{
    Error, MERGE_WORKTREE_VARIABLE, MergeBranch, MergeMethod, MergeOutcome, MergeStart, MergeWorktree,
    commit_of_branch, end_processes_in_merge_worktree, has_uncommitted_files, propose_merge_worktree,
};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

const RESULT: &str = "teamd/survey/merged";

impl TestRepository {
    /// Creates a branch at main with a commit that changes a file.
    fn branch_with_commit(&self, branch: &str, file: &str, text: &str) -> String {
        self.git(&self.repository, &["switch", "--quiet", "--create", branch, "main"]);
        write_file(&self.repository.join(file), text);
        self.commit(&self.repository, branch);
        self.git(&self.repository, &["switch", "--quiet", "main"]);
        self.commit_of(branch)
    }

    fn commit_of(&self, branch: &str) -> String {
        self.git(&self.repository, &["rev-parse", branch])
    }

    fn open_branch(&self, name: &str, start: MergeStart<'_>) -> Result<MergeBranch, Error> {
        MergeBranch::open(&self.repository.join(".git"), name, start, &self.git_environment())
    }

    fn add_merge_worktree(&self, branch: &MergeBranch) -> MergeWorktree {
        let directory = self.home().canonicalize().unwrap().join("repo.worktrees");
        let record = propose_merge_worktree(&directory, "survey-merge", branch).unwrap();
        MergeWorktree::add(record, &branch.next_base, &self.git_environment()).unwrap()
    }

    fn remove_merge_worktree(&self, worktree: MergeWorktree) {
        worktree.record.remove(&self.git_environment()).unwrap();
        assert!(!self.home().join("repo.worktrees").exists());
        assert_eq!(self.git(&self.repository, &["worktree", "list"]).lines().count(), 1);
    }
}

fn merged(outcome: MergeOutcome, expected_commits: usize) -> String {
    match outcome {
        MergeOutcome::Merged { commit, commits } if commits == expected_commits => commit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn branches_are_merged_and_conflicts_are_taken_back() {
    let repo = TestRepository::new();
    let ann = repo.branch_with_commit("ann", "a", "ann\n");
    let bob = repo.branch_with_commit("bob", "sub/b", "bob\n");
    let cy = repo.branch_with_commit("cy", "a", "cy\n");
    let environment = repo.git_environment();
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    assert_eq!((&branch.tip, &branch.next_base), (&None, &repo.commit_of("main")));
    let worktree = repo.add_merge_worktree(&branch);
    let merge = |branch: &MergeBranch, commit: &str| {
        worktree.merge(branch, commit, MergeMethod::Merge, &format!("Merge {commit}")).unwrap()
    };
    let first = merged(merge(&branch, &ann), 1);
    branch.advance(&first, MergeMethod::Merge, &ann, &environment).unwrap();
    write_file(&worktree.path().join("sub/b"), "changed by a test\n");
    write_file(&worktree.path().join("untracked/x"), "made by a test\n");
    assert_eq!(merge(&branch, &cy), MergeOutcome::Conflict(vec![PathBuf::from("a")]));
    let second = merged(merge(&branch, &bob), 1);
    branch.advance(&second, MergeMethod::Merge, &bob, &environment).unwrap();
    assert_eq!(read_file(&worktree.path().join("a")), "ann\n");
    assert_eq!(read_file(&worktree.path().join("sub/b")), "bob\n");
    assert!(!worktree.path().join("untracked").exists());
    assert_eq!(merge(&branch, &bob), MergeOutcome::NothingToMerge);
    assert_eq!(repo.git(&repo.repository, &["log", "-1", "--format=%s", RESULT]), format!("Merge {bob}"));
    assert_eq!(commit_of_branch(&branch.repository, RESULT, &environment).unwrap(), Some(second));
    repo.remove_merge_worktree(worktree);
    assert_eq!(repo.git(&repo.repository, &["status", "--porcelain"]), "");
}

#[test]
fn rebase_copies_commits_and_leaves_the_branch_alone() {
    let repo = TestRepository::new();
    // This setting would make a rebase move other branches.
    repo.git(repo.home(), &["config", "--global", "rebase.updateRefs", "true"]);
    let ann = repo.branch_with_commit("ann", "a", "ann\n");
    repo.git(&repo.repository, &["branch", "ann-too", "ann"]);
    let bob = repo.branch_with_commit("bob", "sub/b", "bob\n");
    let cy = repo.branch_with_commit("cy", "a", "cy\n");
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    let worktree = repo.add_merge_worktree(&branch);
    let rebase =
        |branch: &MergeBranch, commit: &str| worktree.merge(branch, commit, MergeMethod::Rebase, "").unwrap();
    let first = merged(rebase(&branch, &bob), 1);
    assert_eq!(first, bob, "the commit is a descendant of the start already");
    branch.next_base = first;
    let second = merged(rebase(&branch, &ann), 1);
    assert_eq!(repo.git(worktree.path(), &["log", "--format=%s", "main..HEAD"]), "ann\nbob");
    branch.next_base = second;
    assert_eq!(rebase(&branch, &cy), MergeOutcome::Conflict(vec![PathBuf::from("a")]));
    assert_eq!(rebase(&branch, &ann), MergeOutcome::NothingToMerge, "the result has the same change");
    assert_eq!((repo.commit_of("ann"), repo.commit_of("ann-too")), (ann.clone(), ann));
    repo.remove_merge_worktree(worktree);
}

/// The copies have other changes than the originals, because the lines around them differ. So git
/// does not recognize them.
#[test]
fn copied_commits_are_not_copied_again() {
    let repo = TestRepository::new();
    let environment = repo.git_environment();
    let lines = |changes: &[(usize, &str)]| -> String {
        let change = |n| changes.iter().find(|(line, _)| *line == n).map_or("x", |(_, text)| *text);
        (1..=5).map(|n| format!("{}\n", change(n))).collect()
    };
    write_file(&repo.repository.join("a"), &lines(&[]));
    repo.commit(&repo.repository, "lines");
    let ann = repo.branch_with_commit("ann", "a", &lines(&[(1, "ann")]));
    repo.branch_with_commit("bob", "a", &lines(&[(3, "bob 1")]));
    let commit_of_bob = |text: &str| {
        repo.git(&repo.repository, &["switch", "--quiet", "bob"]);
        write_file(&repo.repository.join("a"), &lines(&[(3, text)]));
        repo.commit(&repo.repository, text);
        repo.git(&repo.repository, &["switch", "--quiet", "main"]);
        repo.commit_of("bob")
    };
    let first = repo.commit_of("bob");
    let second = commit_of_bob("bob 2");
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    let worktree = repo.add_merge_worktree(&branch);
    let rebase =
        |branch: &MergeBranch, commit: &str| worktree.merge(branch, commit, MergeMethod::Rebase, "").unwrap();
    for (commit, count) in [(&ann, 1), (&second, 2)] {
        let result = merged(rebase(&branch, commit), count);
        branch.advance(&result, MergeMethod::Rebase, commit, &environment).unwrap();
    }
    let branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    assert_eq!(rebase(&branch, &second), MergeOutcome::NothingToMerge);
    let third = commit_of_bob("bob 3");
    merged(rebase(&branch, &third), 1);
    assert_eq!(read_file(&worktree.path().join("a")), lines(&[(1, "ann"), (3, "bob 3")]));
    // A branch that has only the first of the copied commits.
    repo.git(&repo.repository, &["switch", "--quiet", "-c", "cy", &first]);
    write_file(&repo.repository.join("c"), "cy\n");
    repo.commit(&repo.repository, "cy");
    repo.git(&repo.repository, &["switch", "--quiet", "main"]);
    merged(rebase(&branch, &repo.commit_of("cy")), 1);
    // Without the copies in the result, all commits are copied again.
    repo.git(&repo.repository, &["branch", "--force", RESULT, "main"]);
    let branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    merged(rebase(&branch, &third), 3);
    repo.remove_merge_worktree(worktree);
}

#[test]
fn branch_without_a_common_commit_cannot_be_merged() {
    let repo = TestRepository::new();
    let ann = repo.branch_with_commit("ann", "a", "ann\n");
    let branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    let worktree = repo.add_merge_worktree(&branch);
    let orphan = repo.git(&repo.repository, &["commit-tree", "-m", "orphan", "main^{tree}"]);
    let merge = |commit: &str| worktree.merge(&branch, commit, MergeMethod::Merge, "m").unwrap();
    let MergeOutcome::Impossible(reason) = merge(&orphan) else { panic!("merged") };
    assert!(reason.contains("unrelated histories"), "{reason}");
    merged(merge(&ann), 1);
    repo.remove_merge_worktree(worktree);
}

#[test]
fn name_for_commands_is_not_that_of_a_tag() {
    let repo = TestRepository::new();
    let environment = repo.git_environment();
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    assert_eq!(branch.unambiguous_name(&environment).unwrap(), RESULT);
    branch.move_to_base(&environment).unwrap();
    assert_eq!(branch.unambiguous_name(&environment).unwrap(), RESULT);
    repo.git(&repo.repository, &["tag", RESULT]);
    assert_eq!(branch.unambiguous_name(&environment).unwrap(), format!("heads/{RESULT}"));
}

#[test]
fn branch_is_continued_until_it_is_taken() {
    let repo = TestRepository::new();
    let ann = repo.branch_with_commit("ann", "a", "ann\n");
    let bob = repo.branch_with_commit("bob", "sub/b", "bob\n");
    let start_of = |start| repo.open_branch(RESULT, start).unwrap().next_base;
    repo.git(&repo.repository, &["branch", RESULT, &ann]);
    assert_eq!(start_of(MergeStart::MainWorktree), ann);
    assert_eq!(start_of(MergeStart::Named("main")), ann);
    let diverged = repo.open_branch(RESULT, MergeStart::Named("bob"));
    assert!(matches!(diverged, Err(Error::BranchDiverged { .. })), "{diverged:?}");
    repo.git(&repo.repository, &["merge", "--quiet", RESULT]);
    repo.git(&repo.repository, &["merge", "--quiet", "--no-edit", &bob]);
    assert_eq!(start_of(MergeStart::MainWorktree), repo.commit_of("main"), "the branch is merged");
}

#[test]
fn unusable_branches_and_starts_are_refused() {
    let repo = TestRepository::new();
    let open = |name: &str, start| repo.open_branch(name, start).unwrap_err();
    assert!(matches!(open("main", MergeStart::MainWorktree), Error::BranchTaken { .. }));
    assert!(matches!(open("-x", MergeStart::MainWorktree), Error::InvalidBranch(_)));
    assert!(matches!(open("a..b", MergeStart::MainWorktree), Error::InvalidBranch(_)));
    assert!(matches!(open("main/x", MergeStart::MainWorktree), Error::BranchBlocked { .. }));
    assert!(matches!(open(RESULT, MergeStart::Named("nothing")), Error::NoSuchCommit(_)));
    assert!(matches!(open(RESULT, MergeStart::Named("--all")), Error::NoSuchCommit(_)));
    // The branch is checked out or moved by another program meanwhile.
    let ann = repo.branch_with_commit("ann", "a", "ann\n");
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    repo.git(&repo.repository, &["branch", RESULT]);
    assert!(matches!(
        branch.advance(&ann, MergeMethod::Merge, &ann, &repo.git_environment()),
        Err(Error::Git { .. })
    ));
    let mut branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    repo.git(&repo.repository, &["switch", "--quiet", RESULT]);
    assert!(matches!(
        branch.advance(&ann, MergeMethod::Merge, &ann, &repo.git_environment()),
        Err(Error::BranchTaken { .. })
    ));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test damages and moves its own directories")]
fn merge_worktree_is_removed_in_every_state() {
    let repo = TestRepository::new();
    let branch = repo.open_branch(RESULT, MergeStart::MainWorktree).unwrap();
    let environment = repo.git_environment();
    let damages: [fn(&Path); 3] = [
        |_| {},
        |path| std::fs::remove_file(path.join(".git")).unwrap(),
        |path| std::fs::remove_dir_all(path).unwrap(),
    ];
    for damage in damages {
        let worktree = repo.add_merge_worktree(&branch);
        // git marks a worktree as locked while it creates it.
        repo.git(&repo.repository, &["worktree", "lock", path_str(worktree.path())]);
        damage(worktree.path());
        repo.remove_merge_worktree(worktree);
    }
    // Another directory at the path stays.
    let worktree = repo.add_merge_worktree(&branch);
    let moved = repo.home().join("moved");
    std::fs::rename(worktree.path(), moved).unwrap();
    write_file(&worktree.path().join("x"), "of a person\n");
    worktree.record.remove(&environment).unwrap();
    assert_eq!(read_file(&worktree.path().join("x")), "of a person\n");
}

#[test]
fn uncommitted_files_are_found() {
    let repo = TestRepository::new();
    let has_files = |path: &Path| has_uncommitted_files(path, &repo.git_environment()).unwrap();
    let worktree = repo.create_worktree().path;
    write_file(&worktree.join("x.log"), "ignored\n");
    assert!(!has_files(&worktree));
    write_file(&worktree.join("a"), "changed\n");
    assert!(has_files(&worktree));
    assert!(!has_files(&repo.home().join("missing")));
}

#[test]
fn processes_get_sigterm_before_sigkill() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap 'echo ended; exit' TERM; echo started; while :; do read line; done";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .env(MERGE_WORKTREE_VARIABLE, directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("started"));
    end_processes_in_merge_worktree(directory.path()).unwrap();
    assert_eq!(lines.next().as_deref(), Some("ended"));
    child.wait().unwrap();
}
