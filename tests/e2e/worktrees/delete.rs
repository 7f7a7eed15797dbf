//! Checks what `teamctl delete` does not remove: paths from team files, replaced and moved
//! worktrees, and everything when it is rejected.

use super::{env_with_repository, files_below, git, path_text, spawn, wait_until_exited, write_file};

#[test]
fn paths_in_files_are_never_deleted() {
    let env = env_with_repository();
    let foreign_dir = env.path("home/treasure");
    write_file(&foreign_dir.join("gold"), "x");
    spawn(&env, "ann", &env.path("repo"));
    wait_until_exited(&env, "ann");
    let config = env.path("root/teams/survey/config.json");
    let mut team = env.read_config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    member["worktreePath"] = path_text(&foreign_dir).into();
    team["members"].as_array_mut().unwrap().push(member);
    team["members"][0]["worktreePath"] = path_text(&env.path("repo")).into();
    write_file(&config, &team.to_string());
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(foreign_dir.join("gold").exists() && env.path("repo/a").exists());
    env.shut_down();
}

#[test]
fn replaced_worktree_is_left_alone() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    let removed_tree = spawn(&env, "bob", &env.path("repo"));
    for name in ["ann", "bob"] {
        wait_until_exited(&env, name);
    }
    // One worktree is removed and its directory created again by another program. The other one is
    // only removed.
    git(&env, &env.path("repo"), &["worktree", "remove", path_text(&tree)]);
    write_file(&tree.join("somebody's"), "x");
    git(&env, &env.path("repo"), &["worktree", "remove", path_text(&removed_tree)]);
    let output = env.teamctl(["doctor"]).stdout;
    assert!(output.contains(path_text(&removed_tree)) && output.contains("is gone"), "{output}");
    let output = env.teamctl(["delete", "survey"]).expect_success();
    assert!(output.contains("Left alone") && tree.join("somebody's").exists(), "{output}");
    env.shut_down();
}

#[test]
fn rejected_delete_touches_no_worktree() {
    let env = env_with_repository();
    let (clean, dirty) = (spawn(&env, "ann", &env.path("repo")), spawn(&env, "bob", &env.path("repo")));
    write_file(&dirty.join("new"), "x");
    for name in ["ann", "bob"] {
        wait_until_exited(&env, name);
    }
    let args = ["delete", "survey", "--discard", path_text(&dirty)];
    let assert_rejected = |reason: &str| {
        let error = env.teamctl(args).expect_failure(76);
        assert!(error.contains(reason), "{error}");
        assert!(clean.join("a").exists() && dirty.join("new").exists() && !has_trash(&env));
        git(&env, &env.path("repo"), &["rev-parse", "--verify", "teamd/survey/ann"]);
    };
    let notes = env.path("root/teams/survey/notes.txt");
    write_file(&notes, "somebody's");
    assert_rejected("notes.txt");
    assert!(env.path("root/teams/survey/inboxes/team-lead.json").exists(), "the inboxes are kept too");
    std::fs::remove_file(notes).unwrap();
    let mut team = env.read_config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    team["members"].as_array_mut().unwrap().push(member);
    write_file(&env.path("root/teams/survey/config.json"), &team.to_string());
    assert_rejected("eve");
    env.teamctl(["delete", "survey", "--force", "--discard", path_text(&dirty)]).expect_success();
    assert!(!clean.exists() && !dirty.exists());
    let doctor = env.json(["doctor"]);
    let checks = doctor["checks"].as_array().unwrap().iter();
    let permissions = checks.filter(|check| check["id"] == "permissions");
    assert!(permissions.clone().all(|check| check["severity"] == "ok"), "the trash is private: {doctor}");
    assert_eq!(permissions.count(), 1, "{doctor}");
    env.shut_down();
}

#[test]
fn mounted_file_system_is_named_with_the_command_that_unmounts_it() {
    if harness::skips_without(harness::Facility::MountTable) {
        return;
    }
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    wait_until_exited(&env, "ann");
    let (mounted, mount) = (env.path("out/mounted"), tree.join("modules"));
    write_file(&mounted.join("precious"), "x");
    std::fs::create_dir(&mount).unwrap();
    let run = |program: &str, args: &[&str]| env.command(program).args(args).status().unwrap().success();
    if !run("mount", &["--bind", path_text(&mounted), path_text(&mount)]) {
        harness::record_skip("mounted-worktree", "only a user who may mount can test mounts");
        return env.shut_down();
    }
    for discard in [&[][..], &["--discard", path_text(&tree)]] {
        let error = env.teamctl_with(&[&["delete", "survey"], discard].concat(), &[]).expect_failure(76);
        assert!(error.contains("unmount it first: umount ") && !error.contains("--discard"), "{error}");
    }
    assert!(mounted.join("precious").exists());
    assert!(run("umount", &[path_text(&mount)]));
    env.teamctl(["delete", "survey"]).expect_success();
    assert!(mounted.join("precious").exists());
    env.shut_down();
}

#[test]
fn moved_worktree_is_not_treated_as_removed() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    write_file(&tree.join("new"), "x");
    wait_until_exited(&env, "ann");
    let (worktrees_dir, moved_dir) = (env.path("repo.worktrees"), env.path("not-mounted"));
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    let rename_dir = |from: &std::path::Path, to: &std::path::Path| std::fs::rename(from, to).unwrap();
    rename_dir(&worktrees_dir, &moved_dir);
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("its disk is not mounted"), "{error}");
    rename_dir(&moved_dir, &worktrees_dir);
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("untracked: new"), "{error}");
    rename_dir(&worktrees_dir, &moved_dir);
    let reply = env.json(["delete", "survey", "--discard", path_text(&tree)]);
    assert_eq!(reply["missing"][0], path_text(&tree), "{reply}");
    assert!(moved_dir.join("survey-ann/new").exists());
    env.shut_down();
}

#[test]
fn file_names_cannot_add_lines_to_the_error() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    write_file(&tree.join("x\nsurvey is deleted."), "x");
    wait_until_exited(&env, "ann");
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(!error.lines().any(|line| line.starts_with("survey is deleted")), "{error}");
    env.shut_down();
}

#[test]
fn rejected_delete_ends_no_member() {
    let env = env_with_repository();
    let (dirty, clean) = (spawn(&env, "ann", &env.path("repo")), spawn(&env, "bob", &env.path("repo")));
    write_file(&dirty.join("new"), "x");
    let member_pids =
        || ["ann", "bob"].map(|name| env.member(name).expect("the member is running")["pid"].as_u64());
    let pids_before = member_pids();
    let error = env.teamctl(["delete", "survey", "--force"]).expect_failure(76);
    assert!(error.contains("untracked: new") && !error.contains("ended"), "{error}");
    assert!(error.contains(&format!("delete survey --force --discard {}", path_text(&dirty))), "{error}");
    assert_eq!((pids_before[0].is_some(), member_pids()), (true, pids_before));
    // Running members do not prevent the delete, because they are ended first.
    std::fs::remove_file(dirty.join("new")).unwrap();
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(!dirty.exists() && !clean.exists());
    env.shut_down();
}

#[test]
fn delete_uses_the_git_settings_of_the_caller() {
    let env = env_with_repository();
    let repository = env.path("repo");
    let config =
        env.write_file("git.config", "[filter \"rot\"]\nclean = tr a-z n-za-m\nsmudge = tr a-z n-za-m\n");
    write_file(&repository.join(".gitattributes"), "a filter=rot\n");
    git(&env, &repository, &["add", "--all"]);
    git(&env, &repository, &["commit", "--quiet", "--message", "a filter"]);
    let variables = [("GIT_CONFIG_GLOBAL", config.as_str())];
    let args = ["spawn", "ann", "--profile", "worker", "--cwd", path_text(&repository), "--worktree"];
    env.teamctl_with(&args, &variables).expect_success();
    wait_until_exited(&env, "ann");
    // git compares the content of the file, and not only its size and time.
    let file = env.path("repo.worktrees/survey-ann/a");
    std::fs::remove_file(&file).unwrap();
    write_file(&file, "bar\n");
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("changed and not staged: a"), "{error}");
    env.teamctl_with(&["delete", "survey"], &variables).expect_success();
    env.shut_down();
}

fn has_trash(env: &harness::TestEnv) -> bool {
    files_below(&env.path("state")).keys().any(|file| file.iter().any(|name| name == "trash"))
}
