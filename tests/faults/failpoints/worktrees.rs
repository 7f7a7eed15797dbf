//! The operations on worktrees: a member is spawned in a worktree, and a worktree with uncommitted
//! work is deleted with its team. The worktree must be kept or removed completely, its work must be
//! in the worktree or in the trash, and each worktree must have a record in the roster.

use super::env_snapshot::roster;
use super::operations::{as_strs, team_name};
use harness::TestEnv;
use std::path::{Path, PathBuf};

/// A file with work that no commit has.
const UNSAVED: &str = "unsaved";

/// Creates a git repository with one commit.
pub(super) fn create_repository(env: &TestEnv) {
    env.write_file("repo/a", "one\n");
    let author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    git(env, &["init", "--quiet", "--initial-branch", "main"]);
    git(env, &["add", "--all"]);
    git(env, &[&author[..], &["commit", "--quiet", "--message", "first"]].concat());
}

fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command("git").current_dir(env.path("repo")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the arguments that spawn a member in a worktree.
pub(super) fn spawn_args(env: &TestEnv, n: u64) -> Vec<String> {
    let (team, cwd) = (team_name(n), env.path("repo").display().to_string());
    let args = ["spawn", "-t", &team, "eve", "--backend", "in-process", "--cwd", &cwd, "--worktree"];
    args.into_iter().chain(["--", "sleep", "3600"]).map(str::to_owned).collect()
}

/// Spawns a member in a worktree and adds unsaved work. Returns the arguments that delete the team
/// and discard the work.
pub(super) fn spawn_with_unsaved_work(env: &TestEnv, n: u64) -> Vec<String> {
    env.teamctl(["create", &team_name(n)]).expect_success();
    env.teamctl_with(&as_strs(&spawn_args(env, n)), &[]).expect_success();
    add_unsaved_work(env, n);
    delete_args(env, n)
}

/// Returns the arguments that delete the team and discard the work in each worktree of the roster.
pub(super) fn delete_args(env: &TestEnv, n: u64) -> Vec<String> {
    let discard = recorded_worktrees(env, n).into_iter().flat_map(|path| ["--discard".to_owned(), path]);
    ["delete".to_owned(), team_name(n), "--force".to_owned()].into_iter().chain(discard).collect()
}

/// Returns the paths of the team's worktrees in the roster.
fn recorded_worktrees(env: &TestEnv, n: u64) -> Vec<String> {
    let roster = roster(env);
    let worktrees = roster["worktrees"][team_name(n)].as_array().cloned().unwrap_or_default();
    worktrees.iter().map(|worktree| worktree["record"]["path"].as_str().unwrap().to_owned()).collect()
}

/// Returns the paths of the team's worktrees that exist beside the repository.
fn existing_worktrees(env: &TestEnv, n: u64) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env.path("repo.worktrees")).into_iter().flatten().flatten();
    let prefix = format!("{}-", team_name(n));
    let is_of_team = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
    entries.map(|entry| entry.path()).filter(is_of_team).collect()
}

/// Returns the path of the member's worktree from config.json.
fn worktree_of_member(env: &TestEnv, n: u64) -> Option<PathBuf> {
    let config = env.read(&format!("root/teams/{}/config.json", team_name(n)));
    let config: serde_json::Value = serde_json::from_str(&config).ok()?;
    let eve = config["members"].as_array()?.iter().find(|member| member["name"] == "eve")?.clone();
    Some(eve["worktreePath"].as_str()?.into())
}

fn add_unsaved_work(env: &TestEnv, n: u64) {
    let worktree = worktree_of_member(env, n).expect("the member has a worktree");
    env.write_file(worktree.join(UNSAVED).strip_prefix(env.path("")).unwrap().to_str().unwrap(), "work");
}

/// Expects that the member's worktree is in the roster and has the committed file. Each other
/// worktree must be in the roster too, or be an empty directory.
pub(super) fn expect_complete_worktree(env: &TestEnv, n: u64) -> Result<(), String> {
    let own = worktree_of_member(env, n).ok_or("the member has no worktree")?;
    let recorded = recorded_worktrees(env, n);
    if !recorded.iter().any(|path| Path::new(path) == own) || !own.join("a").exists() {
        return Err(format!("{} is not in the roster, or not complete: {recorded:?}", own.display()));
    }
    let is_known = |path: &PathBuf| recorded.iter().any(|known| Path::new(known) == path) || is_empty(path);
    match existing_worktrees(env, n).into_iter().find(|path| !is_known(path)) {
        Some(unknown) => Err(format!("{} is not in the roster: {recorded:?}", unknown.display())),
        None => Ok(()),
    }
}

fn is_empty(path: &Path) -> bool {
    path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// Checks that the team cannot be deleted while its worktree has unsaved work. Then removes the
/// work, and checks that the worktree and its branch are deleted with the team.
pub(super) fn check_kept_then_deleted(env: &TestEnv, n: u64) {
    add_unsaved_work(env, n);
    let file = worktree_of_member(env, n).unwrap().join(UNSAVED);
    let output = env.teamctl(["kill", "-t", &team_name(n), "eve"]);
    assert!([0, 67].contains(&output.code), "{output:#?}");
    env.wait_until("the deletion is rejected because of unsaved work", || {
        let output = env.teamctl(["delete", &team_name(n)]);
        assert!(output.code != 0 && file.exists(), "unsaved work was deleted: {output:#?}");
        output.stderr.contains("unsaved work").then_some(())
    });
    std::fs::remove_file(file).unwrap();
    let delete = || (env.teamctl(["delete", &team_name(n)]).code == 0).then_some(());
    env.wait_until("the team is deleted", delete);
    expect_deleted(env, n).unwrap_or_else(|error| panic!("{error}\n{}", env.dump_state()));
}

/// Expects that no worktree and no branch of the team exists. Empty directories may exist: a daemon
/// that was killed created them before they were in the roster.
pub(super) fn expect_deleted(env: &TestEnv, n: u64) -> Result<(), String> {
    if let Some(worktree) = existing_worktrees(env, n).into_iter().find(|path| !is_empty(path)) {
        return Err(format!("{} still exists", worktree.display()));
    }
    match git(env, &["branch", "--list", &format!("teamd/{}/*", team_name(n))]) {
        branches if branches.is_empty() => Ok(()),
        branches => Err(format!("branches still exist: {branches}")),
    }
}

/// Expects that the work is in its worktree, or in the trash.
pub(super) fn expect_kept_or_in_trash(env: &TestEnv, n: u64) -> Result<(), String> {
    if existing_worktrees(env, n).iter().any(|worktree| worktree.join(UNSAVED).exists())
        || is_in_trash(env, n)
    {
        return Ok(());
    }
    Err("the work is neither in its worktree nor in the trash".to_owned())
}

/// Whether the trash has the work, and a README that names the archive with the work.
pub(super) fn is_in_trash(env: &TestEnv, n: u64) -> bool {
    trash_directories(env, n).iter().any(|trash| {
        let readme = std::fs::read_to_string(trash.join("README")).unwrap_or_default();
        let files = env
            .command("tar")
            .arg("-xOf")
            .arg(trash.join("changed-files.tar"))
            .arg(UNSAVED)
            .output()
            .unwrap();
        readme.contains("changed-files.tar") && files.stdout == b"work"
    })
}

fn trash_directories(env: &TestEnv, n: u64) -> Vec<PathBuf> {
    let states = std::fs::read_dir(env.path("state/teamd")).unwrap().flatten();
    let prefix = format!("{}-eve-", team_name(n));
    let entries =
        states.flat_map(|state| state.path().join("trash").read_dir().into_iter().flatten().flatten());
    let is_of_member = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
    entries.map(|entry| entry.path()).filter(is_of_member).collect()
}
