//! Checks that unsaved work in worktrees survives `teamctl delete`, kills of agents and crashes of
//! the daemon, and that discarded work can be restored.

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
        let pid = env.member(&dirty.member).expect("the member is running")["pid"].as_u64().unwrap();
        env.kill_process(u32::try_from(pid).unwrap());
    }
    env.wait_until("all agents have exited", || {
        all.iter()
            .all(|dirty| env.member(&dirty.member).is_none_or(|member| member["pid"].is_null()))
            .then_some(())
    });
    all.iter().for_each(|dirty| dirty.assert_unchanged(&env));
    // The daemon is killed at a random point of the delete.
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
    let mut args = vec!["--json".to_owned(), "delete".into(), "survey".into(), "--force".into()];
    args.extend(all.iter().flat_map(|dirty| ["--discard".to_owned(), path_text(&dirty.worktree).to_owned()]));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = env.teamctl_with(&args, &[]);
    assert_eq!(output.code, 0, "{output:#?}");
    let reply = output.json();
    let trash_entries = reply["trashed"].as_array().expect("the reply lists the discarded worktrees");
    assert_eq!(trash_entries.len(), all.len(), "{reply}");
    for dirty in &all {
        let entry = trash_entries
            .iter()
            .find(|entry| path_from_json(&entry["path"]) == dirty.worktree)
            .expect(dirty.kind);
        assert!(!dirty.worktree.exists(), "{}", dirty.kind);
        assert_restored(&env, dirty, &path_from_json(&entry["trash_dir"]));
    }
    assert!(!env.path("root/teams/survey").exists());
    end_processes(&mut all);
    env.shut_down();
}

/// Follows the instructions in the README of the trash directory, in a new clone. Checks that all
/// work is restored.
fn assert_restored(env: &TestEnv, dirty: &UnsavedWorktree, trash: &Path) {
    let clone = env.path(&format!("clone-{}", dirty.kind));
    git(env, &env.path(""), &["clone", "--quiet", path_text(&dirty.repository), path_text(&clone)]);
    let readme = std::fs::read_to_string(trash.join("README")).unwrap();
    let is_command = |line: &&str| ["git ", "cd ", "tar "].iter().any(|program| line.starts_with(program));
    let commands: Vec<&str> = readme.lines().filter(is_command).collect();
    let mut shell = env.command("sh");
    let output = shell.current_dir(&clone).args(["-ec", &commands.join("\n")]).output().unwrap();
    assert!(output.status.success(), "{}: {readme}\n{}", dirty.kind, String::from_utf8_lossy(&output.stderr));
    let restored = PathBuf::from(format!("{}.restored", path_text(&dirty.worktree)));
    assert_eq!(files_below(&restored), dirty.before.0, "{}", dirty.kind);
    let head = dirty.before.1.lines().next().unwrap();
    assert_eq!(git(env, &restored, &["rev-parse", "HEAD"]), head, "{}", dirty.kind);
    match dirty.kind {
        "staged" => assert_eq!(git(env, &restored, &["diff", "--cached", "--name-only"]), "a"),
        "stashed" => assert_eq!(git(env, &restored, &["show", "refs/restored/stash-0:a"]), "stashed"),
        "submodule" => {
            let bundle = trash.join("submodules/0/commits.bundle");
            let submodule_source = env.path("repo");
            git(
                env,
                &submodule_source,
                &["fetch", "--quiet", path_text(&bundle), "refs/heads/kept:refs/heads/kept"],
            );
            assert_eq!(git(env, &submodule_source, &["show", "kept:a"]), "in the part");
        }
        _ => {}
    }
}
