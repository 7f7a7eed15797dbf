//! Whatever happens to agent, team and daemon, unsaved work is there afterwards.

use super::unsaved_kinds::{UnsavedWorktree, assert_delete_rejected, end_processes};
use super::{env_with_repository, files_below, git, path_from_json, path_text};
use harness::TestEnv;
use std::path::{Path, PathBuf};

#[test]
fn delete_keeps_all_kinds_of_unsaved_work() {
    let env = env_with_repository();
    let mut all = UnsavedWorktree::create_all(&env);
    assert_delete_rejected(&env, &all);
    assert_delete_rejected(&env, &all);
    end_processes(&mut all);
    env.shut_down();
}

#[test]
fn kill_keeps_all_kinds_of_unsaved_work() {
    let env = env_with_repository();
    let mut all = UnsavedWorktree::create_all(&env);
    for dirty in &all {
        env.teamctl(["kill", &dirty.member]).expect_success();
        dirty.assert_unchanged(&env);
    }
    assert_delete_rejected(&env, &all);
    end_processes(&mut all);
    env.shut_down();
}

#[test]
fn crashes_keep_all_kinds_of_unsaved_work() {
    let env = env_with_repository();
    let mut all = UnsavedWorktree::create_all(&env);
    for dirty in &all {
        let pid = env.member(&dirty.member).expect("it lives")["pid"].as_u64().unwrap();
        env.kill_process(u32::try_from(pid).unwrap());
    }
    env.wait_until("all have ended", || {
        all.iter().all(|dirty| env.member(&dirty.member).is_none_or(|it| it["pid"].is_null())).then_some(())
    });
    all.iter().for_each(|dirty| dirty.assert_unchanged(&env));
    // A daemon that is killed while it deletes, at whatever point.
    let mut deleting = env.start_teamctl(["delete", "survey", "--force"]);
    env.kill_process(env.daemon_pid());
    deleting.wait().unwrap();
    all.iter().for_each(|dirty| dirty.assert_unchanged(&env));
    env.start_daemon();
    assert_delete_rejected(&env, &all);
    harness::record_result("unsaved-kinds", all.len() as u64);
    end_processes(&mut all);
    env.shut_down();
}

#[test]
fn discarded_work_can_be_restored() {
    let env = env_with_repository();
    let mut all = UnsavedWorktree::create_all(&env);
    let mut words = vec!["--json".to_owned(), "delete".into(), "survey".into(), "--force".into()];
    words
        .extend(all.iter().flat_map(|dirty| ["--discard".to_owned(), path_text(&dirty.worktree).to_owned()]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = env.teamctl_with(&words, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let told = ran.json();
    let trashed = told["trashed"].as_array().expect("what was saved");
    assert_eq!(trashed.len(), 12, "{told}");
    for dirty in &all {
        let it = trashed.iter().find(|it| path_from_json(&it["path"]) == dirty.worktree).expect(dirty.kind);
        assert!(!dirty.worktree.exists(), "{}", dirty.kind);
        assert_restored(&env, dirty, &path_from_json(&it["trash_dir"]));
    }
    assert!(!env.path("root/teams/survey").exists());
    end_processes(&mut all);
    env.shut_down();
}

/// Follows the words in the trash, in a fresh clone.
fn assert_restored(env: &TestEnv, dirty: &UnsavedWorktree, trash: &Path) {
    let clone = env.path(&format!("clone-{}", dirty.kind));
    git(env, &env.path(""), &["clone", "--quiet", path_text(&dirty.repository), path_text(&clone)]);
    let readme = std::fs::read_to_string(trash.join("README")).unwrap();
    let is_order = |line: &&str| ["git ", "cd ", "tar "].iter().any(|word| line.starts_with(word));
    let orders: Vec<&str> = readme.lines().filter(is_order).collect();
    let mut shell = env.command("sh");
    let done = shell.current_dir(&clone).args(["-ec", &orders.join("\n")]).output().unwrap();
    assert!(done.status.success(), "{}: {readme}\n{}", dirty.kind, String::from_utf8_lossy(&done.stderr));
    let restored = PathBuf::from(format!("{}.restored", path_text(&dirty.worktree)));
    assert_eq!(files_below(&restored), dirty.before.0, "{}", dirty.kind);
    let head = dirty.before.1.lines().next().unwrap();
    assert_eq!(git(env, &restored, &["rev-parse", "HEAD"]), head, "{}", dirty.kind);
    match dirty.kind {
        "staged" => assert_eq!(git(env, &restored, &["diff", "--cached", "--name-only"]), "a"),
        "stashed" => assert_eq!(git(env, &restored, &["show", "refs/restored/stash-0:a"]), "stashed"),
        "submodule" => {
            let bundle = trash.join("submodules/0/commits.bundle");
            let part = env.path("repo");
            git(env, &part, &["fetch", "--quiet", path_text(&bundle), "refs/heads/kept:refs/heads/kept"]);
            assert_eq!(git(env, &part, &["show", "kept:a"]), "in the part");
        }
        _ => {}
    }
}
