//! Against the real git, in repositories of their own.

mod create;
mod save_and_restore;
mod unsaved_work;

use crate::{
    GitEnvironment, KeepReason, RemoveOutcome, WorktreeOptions, WorktreeProposal, WorktreeRecord,
    propose_worktree,
};
use std::fs::{create_dir, create_dir_all, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A home, and in it a repository `REPO` with a commit.
struct TestRepository {
    directory: TempDir,
    repository: PathBuf,
}

/// What a new one holds: two files, one in a subdirectory, and what is ignored.
const FILES: [(&str, &str); 3] =
    [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n/cache\n/kept\n")];

impl TestRepository {
    fn new() -> TestRepository {
        TestRepository::with_name("repo")
    }

    fn with_name(name: &str) -> TestRepository {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path().canonicalize().unwrap().join(name);
        let ground = TestRepository { repository, directory };
        create_dir(&ground.repository).unwrap();
        for (name, value) in [
            ("user.name", "t"),
            ("user.email", "t@example.org"),
            ("init.defaultBranch", "main"),
            ("protocol.file.allow", "always"),
        ] {
            ground.git(ground.home(), &["config", "--global", name, value]);
        }
        ground.git(&ground.repository, &["init", "--quiet"]);
        for (name, text) in FILES {
            write_file(&ground.repository.join(name), text);
        }
        ground.commit(&ground.repository, "first");
        ground
    }

    fn home(&self) -> &Path {
        self.directory.path()
    }

    fn git_environment(&self) -> GitEnvironment {
        // What points git elsewhere must not get through.
        GitEnvironment::from_vars([
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", self.home().into()),
            ("LANG", "de_DE.UTF-8".into()),
            ("GIT_DIR", "/nowhere".into()),
            ("GIT_WORK_TREE", "/nowhere".into()),
        ])
    }

    fn run_git(&self, at: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home());
        command.env("GIT_EDITOR", "true").current_dir(at).args(arguments).output().unwrap()
    }

    fn git(&self, at: &Path, arguments: &[&str]) -> String {
        let output = self.run_git(at, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn commit(&self, at: &Path, what: &str) {
        self.git(at, &["add", "--all"]);
        self.git(at, &["commit", "--quiet", "--message", what]);
    }

    fn options(&self, cwd: &Path) -> WorktreeOptions {
        WorktreeOptions {
            cwd: cwd.to_owned(),
            name: "survey-ann".to_owned(),
            branch: None,
            default_branch: "teamd/survey/ann".to_owned(),
            previous: Vec::new(),
        }
    }

    fn propose(&self, wanted: &WorktreeOptions) -> WorktreeProposal {
        propose_worktree(wanted, &self.git_environment()).unwrap()
    }

    /// A worktree of the repository.
    fn create_worktree(&self) -> WorktreeRecord {
        let plan = self.propose(&self.options(&self.repository));
        plan.add(&self.git_environment()).unwrap();
        plan.record
    }

    fn keep_reasons(&self, tree: &WorktreeRecord) -> Vec<KeepReason> {
        tree.keep_reasons(&self.git_environment()).unwrap()
    }

    fn remove(&self, tree: &WorktreeRecord) -> RemoveOutcome {
        tree.remove(&self.git_environment()).unwrap()
    }

    /// A remote that has everything of now.
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

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn write_file(path: &Path, text: &str) {
    create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read_file(path: &Path) -> String {
    read_to_string(path).unwrap()
}
