//! Against the real git, in repositories of their own.

mod making;
mod saving;
mod seeing;

use crate::{Plan, Reason, Removed, Surroundings, Tree, Wanted, plan};
use std::fs::{create_dir, create_dir_all, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A home, and in it a repository `REPO` with a commit.
struct Ground {
    directory: TempDir,
    repository: PathBuf,
}

/// What a new one holds: two files, one in a subdirectory, and what is ignored.
const FILES: [(&str, &str); 3] =
    [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n/cache\n/kept\n")];

impl Ground {
    fn new() -> Ground {
        Ground::named("repo")
    }

    fn named(name: &str) -> Ground {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path().canonicalize().unwrap().join(name);
        let ground = Ground { repository, directory };
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
            put(&ground.repository.join(name), text);
        }
        ground.commit(&ground.repository, "first");
        ground
    }

    fn home(&self) -> &Path {
        self.directory.path()
    }

    fn surroundings(&self) -> Surroundings {
        // What points git elsewhere must not get through.
        Surroundings::of([
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", self.home().into()),
            ("LANG", "de_DE.UTF-8".into()),
            ("GIT_DIR", "/nowhere".into()),
            ("GIT_WORK_TREE", "/nowhere".into()),
        ])
    }

    fn ran(&self, at: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home());
        command.env("GIT_EDITOR", "true").current_dir(at).args(arguments).output().unwrap()
    }

    fn git(&self, at: &Path, arguments: &[&str]) -> String {
        let output = self.ran(at, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn commit(&self, at: &Path, what: &str) {
        self.git(at, &["add", "--all"]);
        self.git(at, &["commit", "--quiet", "--message", what]);
    }

    fn wanted(&self, cwd: &Path) -> Wanted {
        Wanted {
            cwd: cwd.to_owned(),
            name: "survey-ann".to_owned(),
            branch: None,
            usual_branch: "teamd/survey/ann".to_owned(),
            before: Vec::new(),
        }
    }

    fn plan(&self, wanted: &Wanted) -> Plan {
        plan(wanted, &self.surroundings()).unwrap()
    }

    /// A worktree of the repository.
    fn tree(&self) -> Tree {
        let plan = self.plan(&self.wanted(&self.repository));
        plan.add(&self.surroundings()).unwrap();
        plan.tree
    }

    fn unsaved(&self, tree: &Tree) -> Vec<Reason> {
        tree.unsaved(&self.surroundings()).unwrap()
    }

    fn remove(&self, tree: &Tree) -> Removed {
        tree.remove(&self.surroundings()).unwrap()
    }

    /// A remote that has everything of now.
    fn remote(&self) {
        let remote = self.home().join("remote.git");
        self.git(self.home(), &["clone", "--quiet", "--bare", text(&self.repository), text(&remote)]);
        self.git(&self.repository, &["remote", "add", "origin", text(&remote)]);
        self.git(&self.repository, &["fetch", "--quiet", "origin"]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn put(path: &Path, text: &str) {
    create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    read_to_string(path).unwrap()
}
