//! Each damage that does not mend itself: `doctor` names it, mends it with --fix where that can't be wrong, and is content.

use harness::{House, Processes};
use serde_json::{Value, json};
use std::fs::{Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// What is not fine: `ID STATE`, each once.
fn findings(house: &House, words: &[&str]) -> Vec<String> {
    let told = house.teamctl_with(&[&["--json", "doctor"], words].concat(), &[]).json();
    let checks = told["checks"].as_array().unwrap().iter();
    let word =
        |check: &Value| format!("{} {}", check["id"].as_str().unwrap(), check["state"].as_str().unwrap());
    // What this machine brings is not of the house.
    let mut all: Vec<String> = checks
        .filter(|check| check["state"] != "ok" && check["id"] != "tmux" && check["id"] != "watching")
        .map(word)
        .collect();
    all.sort();
    all.dedup();
    all
}

fn state(house: &House) -> PathBuf {
    std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_variable_that_is_no_text_is_in_nobodys_way() {
    let house = House::with_team();
    let mut doctor = house.command(harness::programs().join("teamctl"));
    doctor.arg("doctor").env("ODD", std::ffi::OsStr::from_bytes(b"\xff"));
    let ran = doctor.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("every pane with our mark"), "{ran:?}");
    house.end();
}

#[test]
fn files_of_ours_that_are_open_to_others_are_closed_when_asked() {
    let house = House::with_team();
    assert_eq!(findings(&house, &[]), [""; 0]);
    let (events, logs) = (state(&house).join("events.jsonl"), state(&house).join("logs"));
    set_permissions(&events, Permissions::from_mode(0o644)).unwrap();
    set_permissions(&logs, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(findings(&house, &[]), ["private fail"]);
    house.teamctl(["doctor", "--fix"]).ok();
    assert_eq!(findings(&house, &[]), [""; 0]);
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&events), mode(&logs)), (0o600, 0o700));
    house.end();
}

#[test]
fn a_root_that_others_can_write_is_named_and_closed_when_asked() {
    let house = House::with_team();
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
    house.end();
}

#[test]
fn an_empty_directory_of_a_spawn_that_was_killed_is_named_and_removed() {
    let house = House::with_team();
    let doctor = |words: &[&str]| {
        let mut doctor = house.command(harness::programs().join("teamctl"));
        let told = doctor.current_dir(house.path("repo")).arg("doctor").args(words).output().unwrap();
        String::from_utf8(told.stdout).unwrap()
    };
    house.put("repo/a", "");
    let git = house.command("git").args(["init", "--quiet"]).current_dir(house.path("repo")).status();
    assert!(git.unwrap().success());
    house.put("repo.worktrees/full/a", "");
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
    house.end();
}

#[test]
fn files_that_the_next_daemon_could_not_read_are_named() {
    let house = House::with_team();
    house.teamctl(["task", "create", "one"]).ok();
    let at = state(&house).strip_prefix(house.path("")).unwrap().display().to_string();
    for (file, finding) in [
        (format!("{at}/policy-survey.json"), "policy fail"),
        (format!("{at}/roster.json"), "roster fail"),
        ("root/tasks/survey/.highwatermark".to_owned(), "tasks fail"),
        ("root/tasks/survey/1.json".to_owned(), "tasks fail"),
    ] {
        let before = std::fs::read(house.path(&file));
        house.put(&file, "{\"half\": ");
        set_permissions(house.path(&file), Permissions::from_mode(0o600)).unwrap();
        assert!(findings(&house, &[]).contains(&finding.to_owned()), "{file}");
        // What nobody but its owner can judge stays.
        assert!(findings(&house, &["--fix"]).contains(&finding.to_owned()), "{file}");
        assert_eq!(house.read(&file), "{\"half\": ");
        match before {
            Ok(before) => drop(house.put(&file, before)),
            Err(_) => std::fs::remove_file(house.path(&file)).unwrap(),
        }
        assert!(!findings(&house, &[]).contains(&finding.to_owned()), "{file}");
    }
    house.end();
}

#[test]
fn a_pipe_and_a_link_where_the_highest_task_belongs_are_named_and_hold_nobody_up() {
    let house = House::with_team();
    house.teamctl(["task", "create", "one"]).ok();
    let mark = house.path("root/tasks/survey/.highwatermark");
    assert!(house.command("mkfifo").arg(&mark).status().unwrap().success());
    let found = house.within(std::time::Duration::from_secs(20), || findings(&house, &[]));
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    std::os::unix::fs::symlink(house.put("out/number", "7"), &mark).unwrap();
    let found = findings(&house, &[]);
    assert!(found.contains(&"tasks fail".to_owned()), "{found:?}");
    std::fs::remove_file(&mark).unwrap();
    house.end();
}

#[test]
fn a_process_of_a_life_that_nobody_knows_is_named_and_ended_and_no_other_is() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let orphan = |root: PathBuf, spawn: &str| {
        let mut command = house.command(house.agent());
        command.arg("stay").env("TEAMD_ROOT", root).env("TEAMD_SPAWN", spawn);
        command.spawn().unwrap()
    };
    let mut lost = orphan(house.root(), "00000000-0000-0000-0000-000000000000");
    let mut others = orphan(house.path("home"), "00000000-0000-0000-0000-000000000000");
    assert_eq!(findings(&house, &[]), ["orphans warn"]);
    assert!(lost.try_wait().unwrap().is_none(), "a look ends nobody");
    let told = house.teamctl(["doctor", "--fix"]).ok();
    assert!(told.contains(&format!("process {} (agent)", lost.id())), "{told}");
    assert!(!lost.wait().unwrap().success());
    assert_eq!(findings(&house, &[]), [""; 0]);
    assert!(others.try_wait().unwrap().is_none(), "that of another root is ended");
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    Processes::one(others.id()).kill();
    others.wait().unwrap();
    house.end();
}

#[test]
fn a_pane_of_a_life_that_no_roster_knows_is_named_with_what_closes_it() {
    let house = House::with_team();
    for name in ["ann", "bob"] {
        house.teamctl(["spawn", name, "--", &house.agent(), "stay"]).ok();
    }
    assert_eq!(findings(&house, &[]), [""; 0]);
    let [ann, bob] = ["ann", "bob"].map(|name| house.member(name).unwrap()["pane"].clone());
    house.kill_9(house.daemon());
    // A part of what it knew is lost.
    let path = state(&house).join("roster.json");
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    roster["agents"].as_array_mut().unwrap().retain(|agent| agent["name"] == "bob");
    house.put(path.strip_prefix(house.path("")).unwrap().to_str().unwrap(), roster.to_string());
    house.start_daemon();
    assert_eq!(findings(&house, &[]), ["members warn", "panes warn"]);
    let told = house.teamctl(["doctor"]).stdout;
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("which no roster knows")).collect();
    assert!(lines.len() == 1 && lines[0].contains(ann.as_str().unwrap()), "{told}");
    let (_, close) = lines[0].split_once("to close it: ").unwrap();
    assert!(house.command("sh").args(["-c", close]).status().unwrap().success());
    let panes = house.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
    let there = |pane: &Value| panes.lines().any(|line| *pane == line);
    assert!(!there(&ann) && there(&bob), "{panes}");
    assert_eq!(findings(&house, &[]), ["members warn"]);
    // Its first process leaves word, which the next daemon takes away: what ran there has ended.
    house.until("it has left word", || {
        let names = std::fs::read_dir(state(&house)).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("end-")).then_some(())
    });
    house.kill_9(house.daemon());
    house.start_daemon();
    house.end();
}

#[test]
fn a_damaged_inbox_and_its_copy_are_named_and_stay() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.put("root/teams/survey/inboxes/ann.json", "[{\"from\": ");
    assert_eq!(findings(&house, &["--fix"]), ["inboxes fail"]);
    assert_eq!(findings(&house, &[]), ["aside warn", "inboxes fail"]);
    house.put("root/teams/survey/inboxes/ann.json", json!([]).to_string());
    assert_eq!(findings(&house, &[]), ["aside warn"]);
    for copy in std::fs::read_dir(state(&house).join("aside")).unwrap() {
        assert_eq!(std::fs::read(copy.as_ref().unwrap().path()).unwrap(), b"[{\"from\": ");
        std::fs::remove_file(copy.unwrap().path()).unwrap();
    }
    assert_eq!(findings(&house, &[]), [""; 0]);
    house.end();
}
