//! Each damage that does not mend itself: `doctor` names it, mends it with --fix where that can't be wrong, and is content.

use harness::{TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::fs::{Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// What is not fine: `ID STATE`, each once.
fn findings(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let told = env.teamctl_with(&[&["--json", "doctor"], words].concat(), &[]).json();
    let checks = told["checks"].as_array().unwrap().iter();
    let word =
        |check: &Value| format!("{} {}", check["id"].as_str().unwrap(), check["severity"].as_str().unwrap());
    // What this machine brings is not of the environment.
    let mut all: Vec<String> = checks
        .filter(|check| check["severity"] != "ok" && check["id"] != "tmux" && check["id"] != "watching")
        .map(word)
        .collect();
    all.sort();
    all.dedup();
    all
}

fn state(env: &TestEnv) -> PathBuf {
    std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn non_utf8_variable_is_ignored() {
    let env = TestEnv::with_team();
    let mut doctor = env.command(harness::programs().join("teamctl"));
    doctor.arg("doctor").env("ODD", std::ffi::OsStr::from_bytes(b"\xff"));
    let ran = doctor.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("every pane with a pane tag of teamd"), "{ran:?}");
    env.shut_down();
}

#[test]
fn state_files_readable_by_others_are_fixed() {
    let env = TestEnv::with_team();
    assert_eq!(findings(&env, &[]), [""; 0]);
    let (events, logs) = (state(&env).join("events.jsonl"), state(&env).join("logs"));
    set_permissions(&events, Permissions::from_mode(0o644)).unwrap();
    set_permissions(&logs, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(findings(&env, &[]), ["permissions fail"]);
    env.teamctl(["doctor", "--fix"]).expect_success();
    assert_eq!(findings(&env, &[]), [""; 0]);
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&events), mode(&logs)), (0o600, 0o700));
    env.shut_down();
}

#[test]
fn group_writable_root_is_fixed() {
    let env = TestEnv::with_team();
    // As /tmp has it: that is meant for everybody, and stays.
    set_permissions(env.root(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(findings(&env, &["--fix"]), ["root fail"]);
    set_permissions(env.root(), Permissions::from_mode(0o700)).unwrap();
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    for path in [env.root(), env.root().join("teams"), env.root().join("tasks")] {
        set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(findings(&env, &[]), ["root fail"], "{path:?}");
        assert_eq!(mode(&path), 0o777, "a look changes nothing");
        assert_eq!(findings(&env, &["--fix"]), [""; 0], "{path:?}");
        assert_eq!(mode(&path), 0o775);
    }
    env.shut_down();
}

#[test]
fn empty_worktree_of_a_killed_spawn_is_removed() {
    let env = TestEnv::with_team();
    let doctor = |words: &[&str]| {
        let mut doctor = env.command(harness::programs().join("teamctl"));
        let told = doctor.current_dir(env.path("repo")).arg("doctor").args(words).output().unwrap();
        String::from_utf8(told.stdout).unwrap()
    };
    env.write_file("repo/a", "");
    let git = env.command("git").args(["init", "--quiet"]).current_dir(env.path("repo")).status();
    assert!(git.unwrap().success());
    env.write_file("repo.worktrees/full/a", "");
    for name in ["left", "new"] {
        std::fs::create_dir(env.path("repo.worktrees").join(name)).unwrap();
    }
    let left = env.path("repo.worktrees/left");
    for name in ["full", "left"] {
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7_200);
        std::fs::File::open(env.path("repo.worktrees").join(name)).unwrap().set_modified(old).unwrap();
    }
    let told = doctor(&[]);
    assert_eq!(told.matches("a spawn that was killed leaves such a one").count(), 1, "{told}");
    assert!(left.is_dir(), "a look changes nothing");
    assert!(
        doctor(&["--fix"])
            .contains(&format!("{} was empty, and of no team here: it is removed", left.display()))
    );
    assert!(!left.exists() && env.path("repo.worktrees/new").is_dir());
    assert!(env.path("repo.worktrees/full/a").exists());
    env.shut_down();
}

#[test]
fn unreadable_state_files_are_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "one"]).expect_success();
    let at = state(&env).strip_prefix(env.path("")).unwrap().display().to_string();
    for (file, finding) in [
        (format!("{at}/policy-survey.json"), "policy fail"),
        (format!("{at}/roster.json"), "roster fail"),
        ("root/tasks/survey/.highwatermark".to_owned(), "tasks fail"),
        ("root/tasks/survey/1.json".to_owned(), "tasks fail"),
    ] {
        let before = std::fs::read(env.path(&file));
        env.write_file(&file, "{\"half\": ");
        set_permissions(env.path(&file), Permissions::from_mode(0o600)).unwrap();
        assert!(findings(&env, &[]).contains(&finding.to_owned()), "{file}");
        // What nobody but its owner can judge stays.
        assert!(findings(&env, &["--fix"]).contains(&finding.to_owned()), "{file}");
        assert_eq!(env.read(&file), "{\"half\": ");
        match before {
            Ok(before) => drop(env.write_file(&file, before)),
            Err(_) => std::fs::remove_file(env.path(&file)).unwrap(),
        }
        assert!(!findings(&env, &[]).contains(&finding.to_owned()), "{file}");
    }
    env.shut_down();
}

#[test]
fn non_regular_highest_task_file_is_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "one"]).expect_success();
    let mark = env.path("root/tasks/survey/.highwatermark");
    assert!(env.command("mkfifo").arg(&mark).status().unwrap().success());
    let found = env.with_timeout(std::time::Duration::from_secs(20), || findings(&env, &[]));
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    std::os::unix::fs::symlink(env.write_file("out/number", "7"), &mark).unwrap();
    let found = findings(&env, &[]);
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    env.shut_down();
}

#[test]
fn process_of_an_unknown_spawn_is_killed() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let orphan = |root: PathBuf, spawn: &str| {
        let mut command = env.command(env.scripted_agent_path());
        command.arg("stay").env("TEAMD_ROOT", root).env("TEAMD_SPAWN", spawn);
        command.spawn().unwrap()
    };
    let mut lost = orphan(env.root(), "00000000-0000-0000-0000-000000000000");
    let mut others = orphan(env.path("home"), "00000000-0000-0000-0000-000000000000");
    assert_eq!(findings(&env, &[]), ["orphans warn"]);
    assert!(lost.try_wait().unwrap().is_none(), "a look ends nobody");
    let told = env.teamctl(["doctor", "--fix"]).expect_success();
    assert!(told.contains(&format!("process {} (scripted-agent)", lost.id())), "{told}");
    assert!(!lost.wait().unwrap().success());
    assert_eq!(findings(&env, &[]), [""; 0]);
    assert!(others.try_wait().unwrap().is_none(), "that of another root is ended");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    TaggedProcesses::single(others.id()).kill();
    others.wait().unwrap();
    env.shut_down();
}

#[test]
fn pane_of_an_unknown_spawn_is_reported() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
    }
    assert_eq!(findings(&env, &[]), [""; 0]);
    let [ann, bob] = ["ann", "bob"].map(|name| env.member(name).unwrap()["pane"].clone());
    env.kill_process(env.daemon_pid());
    // A part of what it knew is lost.
    let path = state(&env).join("roster.json");
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    roster["records"].as_array_mut().unwrap().retain(|agent| agent["request"]["name"] == "bob");
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), roster.to_string());
    env.start_daemon();
    assert_eq!(findings(&env, &[]), ["members warn", "panes warn"]);
    let told = env.teamctl(["doctor"]).stdout;
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("which is in no roster")).collect();
    assert!(lines.len() == 1 && lines[0].contains(ann.as_str().unwrap()), "{told}");
    let (_, close) = lines[0].split_once("to close it: ").unwrap();
    assert!(env.command("sh").args(["-c", close]).status().unwrap().success());
    let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
    let there = |pane: &Value| panes.lines().any(|line| *pane == line);
    assert!(!there(&ann) && there(&bob), "{panes}");
    assert_eq!(findings(&env, &[]), ["members warn"]);
    // Its first process leaves word, which the next daemon takes away: what ran there has ended.
    env.wait_until("it has left word", || {
        let names = std::fs::read_dir(state(&env)).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("exit-")).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.shut_down();
}

#[test]
fn damaged_inbox_is_reported_and_kept() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.write_file("root/teams/survey/inboxes/ann.json", "[{\"from\": ");
    assert_eq!(findings(&env, &["--fix"]), ["inboxes fail"]);
    assert_eq!(findings(&env, &[]), ["corrupt_copies warn", "inboxes fail"]);
    env.write_file("root/teams/survey/inboxes/ann.json", json!([]).to_string());
    assert_eq!(findings(&env, &[]), ["corrupt_copies warn"]);
    for copy in std::fs::read_dir(state(&env).join("corrupt")).unwrap() {
        assert_eq!(std::fs::read(copy.as_ref().unwrap().path()).unwrap(), b"[{\"from\": ");
        std::fs::remove_file(copy.unwrap().path()).unwrap();
    }
    assert_eq!(findings(&env, &[]), [""; 0]);
    env.shut_down();
}
