//! Worktrees of teammates: made, found again, and never removed with work in them. Twelve kinds of unsaved work, each
//! met by a delete, by a kill of its agent, and by crashes of agent and daemon.

mod create;
mod delete;
mod submodules;
mod unsaved;
mod unsaved_kinds;

use harness::TestEnv;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An environment with a team and a repository `repo` with a remote, both with one commit.
fn env_with_repository() -> TestEnv {
    let mut env = TestEnv::new();
    let name = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    env.variables = vec![
        name("GIT_CONFIG_GLOBAL", "/dev/null"),
        name("GIT_AUTHOR_NAME", "t"),
        name("GIT_AUTHOR_EMAIL", "t@example.org"),
        name("GIT_COMMITTER_NAME", "t"),
        name("GIT_COMMITTER_EMAIL", "t@example.org"),
        name("GIT_EDITOR", "true"),
    ];
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    repository(&env, "repo");
    env
}

fn repository(env: &TestEnv, name: &str) -> PathBuf {
    let path = env.path(name);
    std::fs::create_dir(&path).unwrap();
    git(env, &path, &["init", "--quiet", "--initial-branch", "main"]);
    for (file, text) in [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n")] {
        write_file(&path.join(file), text);
    }
    git(env, &path, &["add", "--all"]);
    git(env, &path, &["commit", "--quiet", "--message", "first"]);
    path
}

fn run_git(env: &TestEnv, at: &Path, arguments: &[&str]) -> std::process::Output {
    env.command("git").current_dir(at).args(arguments).output().unwrap()
}

fn git(env: &TestEnv, at: &Path, arguments: &[&str]) -> String {
    let output = run_git(env, at, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A member that does nothing until it is ended, in a worktree; gives where that is.
fn spawn(env: &TestEnv, name: &str, repository: &Path) -> PathBuf {
    let cwd = path_text(repository);
    env.teamctl(["spawn", name, "--profile", "worker", "--cwd", cwd, "--worktree"]).expect_success();
    worktree_path(env, name).expect("it has a worktree")
}

fn worktree_path(env: &TestEnv, name: &str) -> Option<PathBuf> {
    let team = env.json(["status"])["teams"][0].clone();
    let trees = team["worktrees"].as_array()?;
    trees.iter().find(|tree| tree["member"] == name).map(|tree| path_from_json(&tree["path"]))
}

fn path_from_json(value: &Value) -> PathBuf {
    value.as_str().expect("a path").into()
}

fn wait_until_exited(env: &TestEnv, name: &str) {
    env.teamctl(["shutdown", name]).expect_success();
}

/// Every file below, but for `.git`.
fn files_below(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(at) = left.pop() {
        for entry in top.join(&at).read_dir().into_iter().flatten().flatten() {
            let name = at.join(entry.file_name());
            match entry.file_type().unwrap() {
                _ if entry.file_name() == ".git" => {}
                kind if kind.is_dir() => left.push(name),
                // A temporary file of git may be gone by now.
                _ => found.extend(std::fs::read(top.join(&name)).ok().map(|content| (name, content))),
            }
        }
    }
    found
}
