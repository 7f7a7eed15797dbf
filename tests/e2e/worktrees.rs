//! Checks the worktrees of teammates: they are created and reused, and never removed with unsaved
//! work in them.

mod branches;
mod create;
mod delete;
mod merge;
mod setup_teardown;
mod submodules;
mod unsaved;
mod unsaved_kinds;

use harness::TestEnv;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An environment with a team and the repository `repo`, which has one commit.
pub(crate) fn env_with_repository() -> TestEnv {
    let mut env = TestEnv::new();
    env.variables = git_variables();
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    create_repository(&env, "repo");
    env
}

/// The variables with which git needs no settings of the user.
pub(crate) fn git_variables() -> Vec<(String, String)> {
    let variables = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@example.org"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@example.org"),
        ("GIT_EDITOR", "true"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Creates a repository with one commit.
pub(crate) fn create_repository(env: &TestEnv, name: &str) -> PathBuf {
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

fn run_git(env: &TestEnv, directory: &Path, args: &[&str]) -> std::process::Output {
    env.command("git").current_dir(directory).args(args).output().unwrap()
}

/// Runs git, which must succeed, and returns its stdout.
pub(crate) fn git(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    let output = run_git(env, directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
pub(crate) fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Spawns a worker in a worktree of its own. Returns the path of the worktree.
pub(crate) fn spawn(env: &TestEnv, name: &str, repository: &Path) -> PathBuf {
    let cwd = path_text(repository);
    env.teamctl(["spawn", name, "--profile", "worker", "--cwd", cwd, "--worktree"]).expect_success();
    worktree_path(env, name).expect("the member has a worktree")
}

fn worktree_path(env: &TestEnv, name: &str) -> Option<PathBuf> {
    let team = env.json(["status"])["teams"][0].clone();
    let trees = team["worktrees"].as_array()?;
    trees.iter().find(|tree| tree["member"] == name).map(|tree| path_from_json(&tree["path"]))
}

fn path_from_json(value: &Value) -> PathBuf {
    value.as_str().expect("the value is a path").into()
}

fn wait_until_exited(env: &TestEnv, name: &str) {
    env.teamctl(["shutdown", name]).expect_success();
}

/// The content of all files below a directory, except `.git`.
fn files_below(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut remaining = vec![PathBuf::new()];
    while let Some(directory) = remaining.pop() {
        for entry in top.join(&directory).read_dir().into_iter().flatten().flatten() {
            let name = directory.join(entry.file_name());
            match entry.file_type().unwrap() {
                _ if entry.file_name() == ".git" => {}
                kind if kind.is_dir() => remaining.push(name),
                // git may have removed a temporary file meanwhile.
                _ => files.extend(std::fs::read(top.join(&name)).ok().map(|content| (name, content))),
            }
        }
    }
    files
}
