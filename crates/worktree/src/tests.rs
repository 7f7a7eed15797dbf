//! Tests that run git. Each test has its own repository.

mod bundles_of_branches;
mod included_files;
mod merges;
mod no_repository_programs_run;
mod save_and_restore;
mod unsaved_work;
mod worktrees_and_branches;

use crate::{
    GitEnvironment, KeepReason, RemoveOutcome, WorktreeOptions, WorktreeProposal, WorktreeRecord,
    propose_worktree,
};
use std::fs::{create_dir, create_dir_all, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A home directory with a repository that has one commit.
struct TestRepository {
    /// The home directory.
    directory: TempDir,
    /// Path of the repository, without links.
    repository: PathBuf,
}

/// The files in the first commit, and their contents.
const FILES: [(&str, &str); 3] =
    [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n/cache\n/kept\n")];

impl TestRepository {
    fn new() -> TestRepository {
        TestRepository::with_name("repo")
    }

    /// Creates a repository whose directory has this name.
    fn with_name(name: &str) -> TestRepository {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path().canonicalize().unwrap().join(name);
        let repo = TestRepository { repository, directory };
        create_dir(&repo.repository).unwrap();
        for (name, value) in [
            ("user.name", "t"),
            ("user.email", "t@example.org"),
            ("init.defaultBranch", "main"),
            ("protocol.file.allow", "always"),
        ] {
            repo.git(repo.home(), &["config", "--global", name, value]);
        }
        repo.git(&repo.repository, &["init", "--quiet"]);
        for (name, text) in FILES {
            write_file(&repo.repository.join(name), text);
        }
        repo.commit(&repo.repository, "first");
        repo
    }

    fn home(&self) -> &Path {
        self.directory.path()
    }

    fn git_environment(&self) -> GitEnvironment {
        // The last two variables name another repository. They must not reach git.
        GitEnvironment::from_vars([
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", self.home().into()),
            ("LANG", "de_DE.UTF-8".into()),
            ("GIT_DIR", "/nowhere".into()),
            ("GIT_WORK_TREE", "/nowhere".into()),
        ])
    }

    /// Runs git in a directory, as the user does.
    fn run_git(&self, dir: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home());
        command.env("GIT_EDITOR", "true").current_dir(dir).args(args).output().unwrap()
    }

    /// Runs git and returns its output. Panics if git fails.
    fn git(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.run_git(dir, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Commits all changes.
    fn commit(&self, dir: &Path, message: &str) {
        self.git(dir, &["add", "--all"]);
        self.git(dir, &["commit", "--quiet", "--message", message]);
    }

    /// Returns the options for a worktree of the member `ann`.
    fn options(&self, cwd: &Path) -> WorktreeOptions {
        WorktreeOptions {
            cwd: cwd.to_owned(),
            name: "survey-ann".to_owned(),
            branch: None,
            default_branch: "teamd/survey/ann".to_owned(),
            previous: Vec::new(),
        }
    }

    fn propose(&self, options: &WorktreeOptions) -> WorktreeProposal {
        propose_worktree(options, &self.git_environment()).unwrap()
    }

    /// Creates a worktree of the repository.
    fn create_worktree(&self) -> WorktreeRecord {
        let proposal = self.propose(&self.options(&self.repository));
        proposal.add(&self.git_environment()).unwrap();
        proposal.record
    }

    fn keep_reasons(&self, worktree: &WorktreeRecord) -> Vec<KeepReason> {
        worktree.keep_reasons(&self.git_environment()).unwrap()
    }

    fn remove(&self, worktree: &WorktreeRecord) -> RemoveOutcome {
        worktree.remove(&self.git_environment()).unwrap()
    }

    /// Returns git's list of the branches that teamd has created.
    fn teamd_branches(&self) -> String {
        self.git(&self.repository, &["branch", "--list", "teamd/*"])
    }

    /// Adds a remote that has all current commits.
    fn add_remote(&self) {
        let remote = self.home().join("remote.git");
        self.git(self.home(), &["clone", "--quiet", "--bare", path_str(&self.repository), path_str(&remote)]);
        self.git(&self.repository, &["remote", "add", "origin", path_str(&remote)]);
        self.git(&self.repository, &["fetch", "--quiet", "origin"]);
    }
}

fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[allow(clippy::disallowed_methods, reason = "the file belongs to the test")]
fn write_file(path: &Path, text: &str) {
    create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read_file(path: &Path) -> String {
    read_to_string(path).unwrap()
}
