//! Worktrees of teammates: made, found again, and never removed with work in them. Twelve kinds of unsaved work, each
//! met by a delete, by a kill of its agent, and by crashes of agent and daemon.

mod deleting;
mod dirty;
mod making;
mod unsaved;

use harness::House;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A house with a team and a repository `repo` with a remote, both with one commit.
fn house() -> House {
    let mut house = House::empty();
    let name = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    house.variables = vec![
        name("GIT_CONFIG_GLOBAL", "/dev/null"),
        name("GIT_AUTHOR_NAME", "t"),
        name("GIT_AUTHOR_EMAIL", "t@example.org"),
        name("GIT_COMMITTER_NAME", "t"),
        name("GIT_COMMITTER_EMAIL", "t@example.org"),
        name("GIT_EDITOR", "true"),
    ];
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    repository(&house, "repo");
    house
}

fn repository(house: &House, name: &str) -> PathBuf {
    let path = house.path(name);
    std::fs::create_dir(&path).unwrap();
    git(house, &path, &["init", "--quiet", "--initial-branch", "main"]);
    for (file, text) in [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n")] {
        put(&path.join(file), text);
    }
    git(house, &path, &["add", "--all"]);
    git(house, &path, &["commit", "--quiet", "--message", "first"]);
    path
}

fn ran(house: &House, at: &Path, arguments: &[&str]) -> std::process::Output {
    house.command("git").current_dir(at).args(arguments).output().unwrap()
}

fn git(house: &House, at: &Path, arguments: &[&str]) -> String {
    let output = ran(house, at, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A member that does nothing until it is ended, in a worktree; gives where that is.
fn spawn(house: &House, name: &str, repository: &Path) -> PathBuf {
    let cwd = text(repository);
    house.teamctl(["spawn", name, "--agent", "worker", "--cwd", cwd, "--worktree"]).ok();
    path_of(house, name).expect("it has a worktree")
}

fn path_of(house: &House, name: &str) -> Option<PathBuf> {
    let team = house.json(["status"])["teams"][0].clone();
    let trees = team["worktrees"].as_array()?;
    trees.iter().find(|tree| tree["member"] == name).map(|tree| path(&tree["path"]))
}

fn path(value: &Value) -> PathBuf {
    value.as_str().expect("a path").into()
}

fn ended(house: &House, name: &str) {
    house.teamctl(["shutdown", name]).ok();
}

/// Every file below, but for `.git`.
fn files(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(at) = left.pop() {
        for entry in top.join(&at).read_dir().into_iter().flatten().flatten() {
            let name = at.join(entry.file_name());
            match entry.file_type().unwrap() {
                _ if entry.file_name() == ".git" => {}
                kind if kind.is_dir() => left.push(name),
                _ => drop(found.insert(name.clone(), std::fs::read(top.join(&name)).unwrap())),
            }
        }
    }
    found
}
