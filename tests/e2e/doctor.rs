//! Damage that the daemon does not repair: `doctor` reports it, repairs it with `--fix` if the
//! repair is safe, and then reports nothing.

use harness::{TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::fs::{Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The checks of `doctor` that do not pass, as `ID SEVERITY`, sorted, each once.
fn findings(env: &TestEnv, options: &[&str]) -> Vec<String> {
    let report = env.teamctl_with(&[&["--json", "doctor"], options].concat(), &[]).json();
    let checks = report["checks"].as_array().unwrap().iter();
    let describe =
        |check: &Value| format!("{} {}", check["id"].as_str().unwrap(), check["severity"].as_str().unwrap());
    // The results of these two checks depend on the machine.
    let mut findings: Vec<String> = checks
        .filter(|check| check["severity"] != "ok" && check["id"] != "tmux" && check["id"] != "watching")
        .map(describe)
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

fn state_directory(env: &TestEnv) -> PathBuf {
    std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn non_utf8_variable_is_ignored() {
    let env = TestEnv::with_team();
    let mut doctor = env.command(harness::programs().join("teamctl"));
    doctor.arg("doctor").env("ODD", std::ffi::OsStr::from_bytes(b"\xff"));
    let output = doctor.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("every pane with a pane tag of teamd"), "{output:?}");
    env.shut_down();
}

#[test]
fn state_files_readable_by_others_are_fixed() {
    let env = TestEnv::with_team();
    assert_eq!(findings(&env, &[]), [""; 0]);
    let (events, logs) = (state_directory(&env).join("events.jsonl"), state_directory(&env).join("logs"));
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
    // A sticky directory like /tmp is meant for all users, so `doctor` does not change it.
    set_permissions(env.root(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(findings(&env, &["--fix"]), ["root fail"]);
    set_permissions(env.root(), Permissions::from_mode(0o700)).unwrap();
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    for path in [env.root(), env.root().join("teams"), env.root().join("tasks")] {
        set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(findings(&env, &[]), ["root fail"], "{path:?}");
        assert_eq!(mode(&path), 0o777, "without --fix nothing is changed");
        assert_eq!(findings(&env, &["--fix"]), [""; 0], "{path:?}");
        assert_eq!(mode(&path), 0o755);
    }
    env.shut_down();
}

#[test]
fn task_file_that_others_can_write_is_not_believed_and_is_fixed() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "one", "--command", "true"]).expect_success();
    let path = env.path("root/tasks/survey/1.json");
    set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let error = env.teamctl(["task", "get", "1"]).expect_failure(77);
    assert!(error.contains("chmod go-w"), "{error}");
    assert!(findings(&env, &[]).contains(&"root fail".to_owned()));
    assert_eq!(findings(&env, &["--fix"]), [""; 0]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    env.teamctl(["task", "get", "1"]).expect_success();
    env.shut_down();
}

#[test]
fn empty_worktree_of_a_killed_spawn_is_removed() {
    let env = TestEnv::with_team();
    let run_doctor = |options: &[&str]| {
        let mut doctor = env.command(harness::programs().join("teamctl"));
        let output = doctor.current_dir(env.path("repo")).arg("doctor").args(options).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    env.write_file("repo/a", "");
    let status = env.command("git").args(["init", "--quiet"]).current_dir(env.path("repo")).status();
    assert!(status.unwrap().success());
    env.write_file("repo.worktrees/full/a", "");
    for name in ["left", "new"] {
        std::fs::create_dir(env.path("repo.worktrees").join(name)).unwrap();
    }
    let empty_worktree = env.path("repo.worktrees/left");
    for name in ["full", "left"] {
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7_200);
        std::fs::File::open(env.path("repo.worktrees").join(name)).unwrap().set_modified(old).unwrap();
    }
    let report = run_doctor(&[]);
    assert_eq!(report.matches("a spawn that was killed leaves such a one").count(), 1, "{report}");
    assert!(empty_worktree.is_dir(), "without --fix nothing is changed");
    assert!(
        run_doctor(&["--fix"])
            .contains(&format!("{} was empty, and of no team here: it is removed", empty_worktree.display()))
    );
    assert!(!empty_worktree.exists() && env.path("repo.worktrees/new").is_dir());
    assert!(env.path("repo.worktrees/full/a").exists());
    env.shut_down();
}

#[test]
fn unreadable_state_files_are_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "one"]).expect_success();
    let directory = state_directory(&env).strip_prefix(env.path("")).unwrap().display().to_string();
    for (file, finding) in [
        (format!("{directory}/policy-survey.json"), "policy fail"),
        (format!("{directory}/roster.json"), "roster fail"),
        ("root/tasks/survey/.highwatermark".to_owned(), "tasks fail"),
        ("root/tasks/survey/1.json".to_owned(), "tasks fail"),
    ] {
        let content = std::fs::read(env.path(&file));
        env.write_file(&file, "{\"half\": ");
        set_permissions(env.path(&file), Permissions::from_mode(0o600)).unwrap();
        assert!(findings(&env, &[]).contains(&finding.to_owned()), "{file}");
        // Only the owner can repair the file, so `doctor` does not change it.
        assert!(findings(&env, &["--fix"]).contains(&finding.to_owned()), "{file}");
        assert_eq!(env.read(&file), "{\"half\": ");
        match content {
            Ok(content) => drop(env.write_file(&file, content)),
            Err(_) => std::fs::remove_file(env.path(&file)).unwrap(),
        }
        assert!(!findings(&env, &[]).contains(&finding.to_owned()), "{file}");
    }
    // JSON is not enough: the next daemon refuses a roster of another version.
    let roster = format!("{directory}/roster.json");
    let content = env.read(&roster);
    env.write_file(&roster, "{\"version\": 99}");
    assert!(findings(&env, &[]).contains(&"roster fail".to_owned()));
    env.write_file(&roster, content);
    env.shut_down();
}

#[test]
fn non_regular_highest_task_file_is_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "one"]).expect_success();
    let path = env.path("root/tasks/survey/.highwatermark");
    assert!(env.command("mkfifo").arg(&path).status().unwrap().success());
    let results = env.with_timeout(std::time::Duration::from_secs(20), || findings(&env, &[]));
    assert!(results.contains(&"tasks fail".to_owned()), "{results:?}");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(env.write_file("out/number", "7"), &path).unwrap();
    let results = findings(&env, &[]);
    assert!(results.contains(&"tasks fail".to_owned()), "{results:?}");
    std::fs::remove_file(&path).unwrap();
    env.shut_down();
}

#[test]
fn process_of_an_unknown_spawn_is_killed() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let start_orphan = |root: PathBuf, spawn: &str| {
        let mut command = env.command(env.scripted_agent_path());
        command.arg("stay").env("TEAMD_ROOT", root).env("TEAMD_SPAWN", spawn);
        command.spawn().unwrap()
    };
    let mut orphan = start_orphan(env.root(), "00000000-0000-0000-0000-000000000000");
    let mut foreign_process = start_orphan(env.path("home"), "00000000-0000-0000-0000-000000000000");
    assert_eq!(findings(&env, &[]), ["orphans warn"]);
    assert!(orphan.try_wait().unwrap().is_none(), "without --fix no process is killed");
    let report = env.teamctl(["doctor", "--fix"]).expect_success();
    assert!(report.contains(&format!("process {} (scripted-agent)", orphan.id())), "{report}");
    assert!(!orphan.wait().unwrap().success());
    assert_eq!(findings(&env, &[]), [""; 0]);
    assert!(foreign_process.try_wait().unwrap().is_none(), "a process of another root runs");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    TaggedProcesses::single(foreign_process.id()).kill();
    foreign_process.wait().unwrap();
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
    // Remove one record from the roster.
    let path = state_directory(&env).join("roster.json");
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    roster["records"].as_array_mut().unwrap().retain(|agent| agent["request"]["name"] == "bob");
    env.write_file(path.strip_prefix(env.path("")).unwrap().to_str().unwrap(), roster.to_string());
    env.start_daemon();
    assert_eq!(findings(&env, &[]), ["members warn", "panes warn"]);
    let report = env.teamctl(["doctor"]).stdout;
    let lines: Vec<&str> = report.lines().filter(|line| line.contains("which is in no roster")).collect();
    assert!(lines.len() == 1 && lines[0].contains(ann.as_str().unwrap()), "{report}");
    let (_, command) = lines[0].split_once("to close it: ").unwrap();
    assert!(env.command("sh").args(["-c", command]).status().unwrap().success());
    let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
    let exists = |pane: &Value| panes.lines().any(|line| *pane == line);
    assert!(!exists(&ann) && exists(&bob), "{panes}");
    assert_eq!(findings(&env, &[]), ["members warn"]);
    // The next daemon removes the exit report of the shim, because the agent has ended.
    env.wait_until("the shim has stored the exit report", || {
        let names =
            std::fs::read_dir(state_directory(&env)).unwrap().flatten().map(|entry| entry.file_name());
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
    // The daemon keeps a copy of the damaged file after two seconds.
    let found = findings(&env, &["--fix"]);
    assert!(["inboxes fail", "corrupt_copies warn, inboxes fail"].contains(&&*found.join(", ")), "{found:?}");
    assert_eq!(findings(&env, &[]), ["corrupt_copies warn", "inboxes fail"]);
    env.write_file("root/teams/survey/inboxes/ann.json", json!([]).to_string());
    assert_eq!(findings(&env, &[]), ["corrupt_copies warn"]);
    for copy in std::fs::read_dir(state_directory(&env).join("corrupt")).unwrap() {
        assert_eq!(std::fs::read(copy.as_ref().unwrap().path()).unwrap(), b"[{\"from\": ");
        std::fs::remove_file(copy.unwrap().path()).unwrap();
    }
    assert_eq!(findings(&env, &[]), [""; 0]);
    env.shut_down();
}
