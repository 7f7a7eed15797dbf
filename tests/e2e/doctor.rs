//! Each damage that does not mend itself: `doctor` names it, mends it with --fix where that can't be wrong, and is content.

use harness::{TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::fs::{Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// What is not fine: `ID STATE`, each once.
fn findings(house: &TestEnv, words: &[&str]) -> Vec<String> {
    let told = house.teamctl_with(&[&["--json", "doctor"], words].concat(), &[]).json();
    let checks = told["checks"].as_array().unwrap().iter();
    let word =
        |check: &Value| format!("{} {}", check["id"].as_str().unwrap(), check["severity"].as_str().unwrap());
    // What this machine brings is not of the house.
    let mut all: Vec<String> = checks
        .filter(|check| check["severity"] != "ok" && check["id"] != "tmux" && check["id"] != "watching")
        .map(word)
        .collect();
    all.sort();
    all.dedup();
    all
}

fn state(house: &TestEnv) -> PathBuf {
    std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn non_utf8_variable_is_ignored() {
    let house = TestEnv::with_team();
    let mut doctor = house.command(harness::programs().join("teamctl"));
    doctor.arg("doctor").env("ODD", std::ffi::OsStr::from_bytes(b"\xff"));
    let ran = doctor.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("every pane with a pane tag of teamd"), "{ran:?}");
    house.shut_down();
}

#[test]
fn state_files_readable_by_others_are_fixed() {
    let house = TestEnv::with_team();
    assert_eq!(findings(&house, &[]), [""; 0]);
    let (events, logs) = (state(&house).join("events.jsonl"), state(&house).join("logs"));
    set_permissions(&events, Permissions::from_mode(0o644)).unwrap();
    set_permissions(&logs, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(findings(&house, &[]), ["permissions fail"]);
    house.teamctl(["doctor", "--fix"]).expect_success();
    assert_eq!(findings(&house, &[]), [""; 0]);
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&events), mode(&logs)), (0o600, 0o700));
    house.shut_down();
}

#[test]
fn group_writable_root_is_fixed() {
    let house = TestEnv::with_team();
    // As /tmp has it: that is meant for everybody, and stays.
    set_permissions(house.root(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(findings(&house, &["--fix"]), ["root fail"]);
    set_permissions(house.root(), Permissions::from_mode(0o700)).unwrap();
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    for path in [house.root(), house.root().join("teams"), house.root().join("tasks")] {
        set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(findings(&house, &[]), ["root fail"], "{path:?}");
        assert_eq!(mode(&path), 0o777, "a look changes nothing");
        assert_eq!(findings(&house, &["--fix"]), [""; 0], "{path:?}");
        assert_eq!(mode(&path), 0o775);
    }
    house.shut_down();
}

#[test]
fn empty_worktree_of_a_killed_spawn_is_removed() {
    let house = TestEnv::with_team();
    let doctor = |words: &[&str]| {
        let mut doctor = house.command(harness::programs().join("teamctl"));
        let told = doctor.current_dir(house.path("repo")).arg("doctor").args(words).output().unwrap();
        String::from_utf8(told.stdout).unwrap()
    };
    house.write_file("repo/a", "");
    let git = house.command("git").args(["init", "--quiet"]).current_dir(house.path("repo")).status();
    assert!(git.unwrap().success());
    house.write_file("repo.worktrees/full/a", "");
    for name in ["left", "new"] {
        std::fs::create_dir(house.path("repo.worktrees").join(name)).unwrap();
    }
    let left = house.path("repo.worktrees/left");
    for name in ["full", "left"] {
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7_200);
        std::fs::File::open(house.path("repo.worktrees").join(name)).unwrap().set_modified(old).unwrap();
    }
    let told = doctor(&[]);
    assert_eq!(told.matches("a spawn that was killed leaves such a one").count(), 1, "{told}");
    assert!(left.is_dir(), "a look changes nothing");
    assert!(
        doctor(&["--fix"])
            .contains(&format!("{} was empty, and of no team here: it is removed", left.display()))
    );
    assert!(!left.exists() && house.path("repo.worktrees/new").is_dir());
    assert!(house.path("repo.worktrees/full/a").exists());
    house.shut_down();
}

#[test]
fn unreadable_state_files_are_reported() {
    let house = TestEnv::with_team();
    house.teamctl(["task", "create", "one"]).expect_success();
    let at = state(&house).strip_prefix(house.path("")).unwrap().display().to_string();
    for (file, finding) in [
        (format!("{at}/policy-survey.json"), "policy fail"),
        (format!("{at}/roster.json"), "roster fail"),
        ("root/tasks/survey/.highwatermark".to_owned(), "tasks fail"),
        ("root/tasks/survey/1.json".to_owned(), "tasks fail"),
    ] {
        let before = std::fs::read(house.path(&file));
        house.write_file(&file, "{\"half\": ");
        set_permissions(house.path(&file), Permissions::from_mode(0o600)).unwrap();
        assert!(findings(&house, &[]).contains(&finding.to_owned()), "{file}");
        // What nobody but its owner can judge stays.
        assert!(findings(&house, &["--fix"]).contains(&finding.to_owned()), "{file}");
        assert_eq!(house.read(&file), "{\"half\": ");
        match before {
            Ok(before) => drop(house.write_file(&file, before)),
            Err(_) => std::fs::remove_file(house.path(&file)).unwrap(),
        }
        assert!(!findings(&house, &[]).contains(&finding.to_owned()), "{file}");
    }
    house.shut_down();
}

#[test]
fn non_regular_highest_task_file_is_reported() {
    let house = TestEnv::with_team();
    house.teamctl(["task", "create", "one"]).expect_success();
    let mark = house.path("root/tasks/survey/.highwatermark");
    assert!(house.command("mkfifo").arg(&mark).status().unwrap().success());
    let found = house.with_timeout(std::time::Duration::from_secs(20), || findings(&house, &[]));
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    std::os::unix::fs::symlink(house.write_file("out/number", "7"), &mark).unwrap();
    let found = findings(&house, &[]);
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    house.shut_down();
}

#[test]
fn process_of_an_unknown_spawn_is_killed() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    let orphan = |root: PathBuf, spawn: &str| {
        let mut command = house.command(house.scripted_agent_path());
        command.arg("stay").env("TEAMD_ROOT", root).env("TEAMD_SPAWN", spawn);
        command.spawn().unwrap()
    };
    let mut lost = orphan(house.root(), "00000000-0000-0000-0000-000000000000");
    let mut others = orphan(house.path("home"), "00000000-0000-0000-0000-000000000000");
    assert_eq!(findings(&house, &[]), ["orphans warn"]);
    assert!(lost.try_wait().unwrap().is_none(), "a look ends nobody");
    let told = house.teamctl(["doctor", "--fix"]).expect_success();
    assert!(told.contains(&format!("process {} (scripted-agent)", lost.id())), "{told}");
    assert!(!lost.wait().unwrap().success());
    assert_eq!(findings(&house, &[]), [""; 0]);
    assert!(others.try_wait().unwrap().is_none(), "that of another root is ended");
    assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    TaggedProcesses::single(others.id()).kill();
    others.wait().unwrap();
    house.shut_down();
}

#[test]
fn pane_of_an_unknown_spawn_is_reported() {
    let house = TestEnv::with_team();
    for name in ["ann", "bob"] {
        house.teamctl(["spawn", name, "--", &house.scripted_agent_path(), "stay"]).expect_success();
    }
    assert_eq!(findings(&house, &[]), [""; 0]);
    let [ann, bob] = ["ann", "bob"].map(|name| house.member(name).unwrap()["pane"].clone());
    house.kill_process(house.daemon_pid());
    // A part of what it knew is lost.
    let path = state(&house).join("roster.json");
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    roster["records"].as_array_mut().unwrap().retain(|agent| agent["request"]["name"] == "bob");
    house.write_file(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), roster.to_string());
    house.start_daemon();
    assert_eq!(findings(&house, &[]), ["members warn", "panes warn"]);
    let told = house.teamctl(["doctor"]).stdout;
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("which is in no roster")).collect();
    assert!(lines.len() == 1 && lines[0].contains(ann.as_str().unwrap()), "{told}");
    let (_, close) = lines[0].split_once("to close it: ").unwrap();
    assert!(house.command("sh").args(["-c", close]).status().unwrap().success());
    let panes = house.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
    let there = |pane: &Value| panes.lines().any(|line| *pane == line);
    assert!(!there(&ann) && there(&bob), "{panes}");
    assert_eq!(findings(&house, &[]), ["members warn"]);
    // Its first process leaves word, which the next daemon takes away: what ran there has ended.
    house.wait_until("it has left word", || {
        let names = std::fs::read_dir(state(&house)).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("exit-")).then_some(())
    });
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    house.shut_down();
}

#[test]
fn damaged_inbox_is_reported_and_kept() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    house.write_file("root/teams/survey/inboxes/ann.json", "[{\"from\": ");
    assert_eq!(findings(&house, &["--fix"]), ["inboxes fail"]);
    assert_eq!(findings(&house, &[]), ["corrupt_copies warn", "inboxes fail"]);
    house.write_file("root/teams/survey/inboxes/ann.json", json!([]).to_string());
    assert_eq!(findings(&house, &[]), ["corrupt_copies warn"]);
    for copy in std::fs::read_dir(state(&house).join("corrupt")).unwrap() {
        assert_eq!(std::fs::read(copy.as_ref().unwrap().path()).unwrap(), b"[{\"from\": ");
        std::fs::remove_file(copy.unwrap().path()).unwrap();
    }
    assert_eq!(findings(&house, &[]), [""; 0]);
    house.shut_down();
}
