//! Worktrees in the sweep: one is made with its member, and one goes with work in it that no commit has. It is kept or
//! removed, never half; what is in it is there or in the trash; and the roster knows of each.

use super::env_snapshot::roster;
use super::operations::{as_strs, team_name};
use harness::TestEnv;
use std::path::{Path, PathBuf};

/// Work that git does not know.
const UNSAVED: &str = "unsaved";

/// One with one commit.
pub(super) fn repository(env: &TestEnv) {
    env.write_file("repo/a", "one\n");
    let author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    git(env, &["init", "--quiet", "--initial-branch", "main"]);
    git(env, &["add", "--all"]);
    git(env, &[&author[..], &["commit", "--quiet", "--message", "first"]].concat());
}

fn git(env: &TestEnv, words: &[&str]) -> String {
    let output = env.command("git").current_dir(env.path("repo")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn spawn(env: &TestEnv, n: u64) -> Vec<String> {
    let (team, cwd) = (team_name(n), env.path("repo").display().to_string());
    let words = ["spawn", "-t", &team, "eve", "--backend", "in-process", "--cwd", &cwd, "--worktree"];
    words.into_iter().chain(["--", "sleep", "3600"]).map(str::to_owned).collect()
}

/// A member in a worktree, with unsaved work; and the words that have both go.
pub(super) fn spawn_with_unsaved_work(env: &TestEnv, n: u64) -> Vec<String> {
    env.teamctl(["create", &team_name(n)]).expect_success();
    env.teamctl_with(&as_strs(&spawn(env, n)), &[]).expect_success();
    add_unsaved_work(env, n);
    discard(env, n)
}

/// Each that is still on record is named.
pub(super) fn discard(env: &TestEnv, n: u64) -> Vec<String> {
    let named = recorded_worktrees(env, n).into_iter().flat_map(|path| ["--discard".to_owned(), path]);
    ["delete".to_owned(), team_name(n), "--force".to_owned()].into_iter().chain(named).collect()
}

/// Paths, of the roster on disk.
fn recorded_worktrees(env: &TestEnv, n: u64) -> Vec<String> {
    let roster = roster(env);
    let all = roster["worktrees"][team_name(n)].as_array().cloned().unwrap_or_default();
    all.iter().map(|ground| ground["record"]["path"].as_str().unwrap().to_owned()).collect()
}

/// Those of the team that lie beside the repository.
fn existing_worktrees(env: &TestEnv, n: u64) -> Vec<PathBuf> {
    let all = std::fs::read_dir(env.path("repo.worktrees")).into_iter().flatten().flatten();
    let begin = format!("{}-", team_name(n));
    let is_its = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&begin);
    all.map(|entry| entry.path()).filter(is_its).collect()
}

/// What its agent is in: config.json says it.
fn worktree_of_member(env: &TestEnv, n: u64) -> Option<PathBuf> {
    let config = env.read(&format!("root/teams/{}/config.json", team_name(n)));
    let config: serde_json::Value = serde_json::from_str(&config).ok()?;
    let eve = config["members"].as_array()?.iter().find(|member| member["name"] == "eve")?.clone();
    Some(eve["worktreePath"].as_str()?.into())
}

fn add_unsaved_work(env: &TestEnv, n: u64) {
    let tree = worktree_of_member(env, n).expect("it has a worktree");
    env.write_file(tree.join(UNSAVED).strip_prefix(env.path("")).unwrap().to_str().unwrap(), "work");
}

/// Its own is on record and has what the commit has; whatever else lies there is on record too, or nobody has filled it.
pub(super) fn expect_complete_worktree(env: &TestEnv, n: u64) -> Result<(), String> {
    let own = worktree_of_member(env, n).ok_or("it has no worktree")?;
    let recorded = recorded_worktrees(env, n);
    if !recorded.iter().any(|path| Path::new(path) == own) || !own.join("a").exists() {
        return Err(format!("{} is not on record, or not whole: {recorded:?}", own.display()));
    }
    let is_known = |path: &PathBuf| recorded.iter().any(|it| Path::new(it) == path) || is_empty(path);
    match existing_worktrees(env, n).into_iter().find(|path| !is_known(path)) {
        Some(stray) => Err(format!("{} is on no record: {recorded:?}", stray.display())),
        None => Ok(()),
    }
}

fn is_empty(path: &Path) -> bool {
    path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// With work in it it stays; without, it goes with its team, and its branch does.
pub(super) fn check_kept_then_deleted(env: &TestEnv, n: u64) {
    add_unsaved_work(env, n);
    let file = worktree_of_member(env, n).unwrap().join(UNSAVED);
    let ran = env.teamctl(["kill", "-t", &team_name(n), "eve"]);
    assert!([0, 67].contains(&ran.code), "{ran:#?}");
    env.wait_until("its team can't be deleted", || {
        let ran = env.teamctl(["delete", &team_name(n)]);
        assert!(ran.code != 0 && file.exists(), "deleted with work in it: {ran:#?}");
        ran.stderr.contains("unsaved work").then_some(())
    });
    std::fs::remove_file(file).unwrap();
    let is_gone = || (env.teamctl(["delete", &team_name(n)]).code == 0).then_some(());
    env.wait_until("its team can be deleted", is_gone);
    expect_deleted(env, n).unwrap_or_else(|left| panic!("{left}\n{}", env.dump_state()));
}

/// Nothing but directories that nobody has filled, and nobody wrote down: they were made ahead of that. No branch.
pub(super) fn expect_deleted(env: &TestEnv, n: u64) -> Result<(), String> {
    if let Some(left) = existing_worktrees(env, n).into_iter().find(|path| !is_empty(path)) {
        return Err(format!("{} is left", left.display()));
    }
    match git(env, &["branch", "--list", &format!("teamd/{}/*", team_name(n))]) {
        branches if branches.is_empty() => Ok(()),
        branches => Err(format!("left: {branches}")),
    }
}

/// The work is where it was, or in the trash, with the words for having it back.
pub(super) fn expect_kept_or_in_trash(env: &TestEnv, n: u64) -> Result<(), String> {
    if existing_worktrees(env, n).iter().any(|tree| tree.join(UNSAVED).exists()) || is_in_trash(env, n) {
        return Ok(());
    }
    Err("the work is neither in its worktree nor in the trash".to_owned())
}

pub(super) fn is_in_trash(env: &TestEnv, n: u64) -> bool {
    trash_directories(env, n).iter().any(|trash| {
        let words = std::fs::read_to_string(trash.join("README")).unwrap_or_default();
        let files = env
            .command("tar")
            .arg("-xOf")
            .arg(trash.join("changed-files.tar"))
            .arg(UNSAVED)
            .output()
            .unwrap();
        words.contains("changed-files.tar") && files.stdout == b"work"
    })
}

fn trash_directories(env: &TestEnv, n: u64) -> Vec<PathBuf> {
    let states = std::fs::read_dir(env.path("state/teamd")).unwrap().flatten();
    let begin = format!("{}-eve-", team_name(n));
    let all = states.flat_map(|state| state.path().join("trash").read_dir().into_iter().flatten().flatten());
    let is_its = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&begin);
    all.map(|entry| entry.path()).filter(is_its).collect()
}
