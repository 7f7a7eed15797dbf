//! Moves branches from one repository into another.

use super::{TestRepository, write_file};
use crate::{
    Error, known_commits, newest_commits, note_received, receive_branch, unnamed_bundle_file, write_bundle,
};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

const BRANCH: &str = "teamd/t/ann";

/// A repository, and a clone of it with a commit on a branch.
struct Clones {
    repo: TestRepository,
    clone: PathBuf,
}

impl Clones {
    fn new() -> Clones {
        let repo = TestRepository::new();
        let clone = repo.home().join("clone");
        let paths = [&repo.repository, &clone].map(|path| path.display().to_string());
        repo.git(repo.home(), &["clone", "--quiet", &paths[0], &paths[1]]);
        repo.git(&clone, &["switch", "--quiet", "--create", BRANCH]);
        let clones = Clones { repo, clone };
        clones.commit("one");
        clones
    }

    fn commit(&self, text: &str) -> String {
        write_file(&self.clone.join("work"), text);
        self.repo.commit(&self.clone, text);
        self.repo.git(&self.clone, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn receiver(&self) -> PathBuf {
        self.repo.repository.join(".git")
    }

    /// The last commit of the branch at the receiver. Empty if there is none.
    fn received(&self) -> String {
        let output = self.repo.run_git(&self.receiver(), &["rev-parse", "--quiet", "--verify", BRANCH]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The bytes of the bundle, and the last commit of the branch.
    fn bundle(&self) -> (Vec<u8>, String) {
        let (environment, sender) = (self.repo.git_environment(), self.clone.join(".git"));
        let offered = newest_commits(&sender, BRANCH, &environment).unwrap().unwrap();
        let known = known_commits(&self.receiver(), &offered, &environment).unwrap();
        let mut file = unnamed_bundle_file().unwrap();
        write_bundle(&sender, BRANCH, &known, &file, &environment).unwrap();
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        (bytes, offered[0].clone())
    }

    #[allow(clippy::disallowed_methods, reason = "the file belongs to the test")]
    fn receive(&self, commit: &str, bundle: &[u8]) -> Result<(), Error> {
        let path: &Path = &self.repo.home().join("bundle");
        std::fs::write(path, bundle).unwrap();
        receive_branch(&self.receiver(), (BRANCH, commit), Some(path), &self.repo.git_environment())
    }
}

#[test]
fn branch_moves_forward_with_only_the_new_commits() {
    let clones = Clones::new();
    for text in ["two", "three"] {
        let (bundle, commit) = clones.bundle();
        clones.receive(&commit, &bundle).unwrap();
        assert_eq!(clones.received(), commit);
        clones.commit(text);
    }
    let (bundle, _) = clones.bundle();
    let text = String::from_utf8_lossy(&bundle).into_owned();
    assert!(text.lines().any(|line| line.starts_with('-')), "a bundle names the commits that it lacks");
}

#[test]
fn part_of_a_bundle_changes_nothing() {
    let clones = Clones::new();
    let (bundle, commit) = clones.bundle();
    for length in [0, 10, bundle.len() / 2, bundle.len() - 1] {
        clones.receive(&commit, &bundle[..length]).unwrap_err();
        assert_eq!(clones.received(), "");
    }
    clones.receive(&commit, &bundle).unwrap();
}

#[test]
fn own_commits_of_the_receiver_and_checked_out_branches_stay() {
    let clones = Clones::new();
    let (bundle, first) = clones.bundle();
    clones.receive(&first, &bundle).unwrap();
    clones.commit("theirs");
    let (bundle, commit) = clones.bundle();
    let repository = clones.repo.repository.clone();
    clones.repo.git(&repository, &["switch", "--quiet", BRANCH]);
    let error = clones.receive(&commit, &bundle).unwrap_err();
    assert!(matches!(error, Error::BranchTaken { .. }), "{error}");
    write_file(&repository.join("a"), "ours\n");
    clones.repo.commit(&repository, "ours");
    let ours = clones.received();
    clones.repo.git(&repository, &["switch", "--quiet", "main"]);
    let error = clones.receive(&commit, &bundle).unwrap_err();
    assert!(matches!(error, Error::OwnCommits { .. }), "{error}");
    assert_eq!(clones.received(), ours);
}

#[test]
fn repository_without_a_common_commit_knows_none() {
    let (clones, other) = (Clones::new(), TestRepository::with_name("other"));
    write_file(&other.repository.join("x"), "x");
    other.commit(&other.repository, "x");
    let environment = other.git_environment();
    let offered = newest_commits(&clones.clone.join(".git"), BRANCH, &environment).unwrap().unwrap();
    // Both begin with the same files, but perhaps not at the same second.
    let known = known_commits(&other.repository.join(".git"), &offered[..1], &environment).unwrap();
    assert_eq!(known, Vec::<String>::new());
}

#[test]
fn noted_commits_are_no_unsaved_work() {
    let clones = Clones::new();
    let (environment, sender) = (clones.repo.git_environment(), clones.clone.join(".git"));
    let offered = newest_commits(&sender, BRANCH, &environment).unwrap().unwrap();
    note_received(&sender, BRANCH, &offered[0], &environment).unwrap();
    let count = ["rev-list", "--count", BRANCH, "--not", "--remotes"];
    assert_eq!(clones.repo.git(&clones.clone, &count).trim(), "0");
    assert_eq!(newest_commits(&sender, "missing", &environment).unwrap(), None);
}
