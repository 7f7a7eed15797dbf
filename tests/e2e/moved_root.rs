//! Checks what the daemon does when its root or a directory of it is removed, moved away or
//! replaced by another program.

#![allow(clippy::disallowed_methods, reason = "the tests act as the other program")]

use harness::TestEnv;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Shorter than the interval of rescans (30 s while file events arrive), so that the tests do not
/// merely wait for the next rescan.
const SOON: Duration = Duration::from_secs(10);

/// Variables of a second environment of the same user: it has the same root, but its own state and
/// runtime directories.
fn other_directories(env: &TestEnv) -> [(String, String); 2] {
    let out = env.path("out").display().to_string();
    [("XDG_STATE_HOME".to_owned(), out.clone()), ("XDG_RUNTIME_DIR".to_owned(), out)]
}

/// Starts teamd outside tmux. In a pane, tmux would continue a stopped daemon at once.
fn start_daemon(env: &TestEnv, variables: &[(String, String)]) -> Child {
    let mut teamd = env.command(harness::programs().join("teamd"));
    teamd.envs(variables.iter().cloned()).arg("-S").arg(env.tmux_socket()).stdout(Stdio::null());
    let teamd = teamd.spawn().unwrap();
    env.wait_until("the daemon answers", || daemon_answers(env, variables).then_some(()));
    teamd
}

fn daemon_answers(env: &TestEnv, variables: &[(String, String)]) -> bool {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    env.teamctl_with(&["status"], &variables).code == 0
}

/// Checks that the daemon works in the directories at the current path: a team can be created, file
/// events of its tasks arrive, and only the owner may use the directories.
fn assert_supervised(env: &TestEnv, team: &str) {
    env.teamctl(["create", team]).expect_success();
    env.teamctl(["task", "create", "-t", team, "dig"]).expect_success();
    env.wait_until_within(SOON, "the new task is in the event log", || {
        let events = env.teamctl(["events", "-t", team]).stdout;
        events.contains("task 1 created").then_some(())
    });
    for directory in ["", "teams", "tasks"] {
        let mode = env.root().join(directory).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{directory}");
    }
}

#[test]
fn root_to_be_created_may_be_behind_a_link() {
    let mut env = TestEnv::new();
    std::fs::remove_dir(env.root()).unwrap();
    std::os::unix::fs::symlink(env.path("."), env.path("link")).unwrap();
    let root = env.path("link/root").display().to_string();
    env.variables.push(("TEAMD_ROOT".to_owned(), root));
    env.start_daemon();
    assert_supervised(&env, "survey");
    env.teamctl(["delete", "survey"]).expect_success();
    env.shut_down();
}

fn move_away(path: &Path) {
    std::fs::rename(path, path.with_extension("away")).unwrap();
}

/// Copies a directory without its locks and temporary files, which may disappear during the copy.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let is_temporary = |name: &str| [".lock", ".tmp.", ".shadow"].iter().any(|part| name.contains(part));
        match entry.file_type()?.is_dir() {
            _ if entry.file_name().to_str().is_some_and(is_temporary) => {}
            true => copy(&from, &to)?,
            false => match std::fs::copy(&from, to) {
                Err(error) if from.exists() => return Err(error),
                _ => {}
            },
        }
    }
    Ok(())
}

#[test]
fn removed_directories_are_recreated_under_one_daemon() {
    let env = TestEnv::with_team();
    let (root, daemon) = (env.root(), env.daemon_pid());
    let changes: [(&str, &dyn Fn()); 4] = [
        ("removed", &|| std::fs::remove_dir_all(root.join("teams")).unwrap()),
        ("moved", &|| move_away(&root.join("teams"))),
        ("tasks", &|| std::fs::remove_dir_all(root.join("tasks")).unwrap()),
        ("all", &|| move_away(&root)),
    ];
    for (team, change) in changes {
        change();
        assert_supervised(&env, team);
        let mut second = env.command(harness::programs().join("teamd"));
        let output = second.envs(other_directories(&env)).arg("-S").arg(env.tmux_socket()).output().unwrap();
        assert_eq!(output.status.code(), Some(69), "{output:?}");
    }
    assert_eq!(env.daemon_pid(), daemon);
    let events = env.teamctl(["events"]).stdout;
    assert!(events.contains("were removed or moved away: opened anew"), "{events}");
    env.shut_down();
}

/// The copy has the same content as the directory that was moved away, as after a restored backup.
#[test]
fn teammate_continues_in_replaced_directories() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let finish_task = |subject: &str| {
        env.teamctl(["task", "create", subject, "--metadata", r#"{"command": "true"}"#]).expect_success();
        env.teamctl(["send", "ann", subject]).expect_success();
        env.wait_until_within(SOON, "the task is completed and all messages are read", || {
            let tasks = env.tasks("survey");
            let task = tasks.iter().find(|task| task["subject"] == subject)?;
            let read = env.inbox("survey", "ann").iter().all(|entry| entry["read"] == true);
            (task["status"] == "completed" && read).then_some(())
        });
    };
    finish_task("at first");
    for directory in ["root", "root/teams", "root/tasks"] {
        let path = env.path(directory);
        move_away(&path);
        copy(&path.with_extension("away"), &path).unwrap();
        finish_task(directory);
    }
    env.shut_down();
}

/// The daemon reports the missing root but does not recreate it by itself, because its path may now
/// be meant for something else. The next `create` recreates it.
#[test]
fn missing_root_is_reported_and_recreated() {
    let env = TestEnv::with_team();
    move_away(&env.root());
    let report = env.teamctl(["doctor"]).stdout;
    if !harness::skips_without(harness::Facility::OpenFiles) {
        assert!(report.contains("is not the directory that teamd works in"), "{report}");
    }
    assert_supervised(&env, "next");
    let report = env.teamctl(["doctor"]).stdout;
    assert!(!report.contains("is not the directory that teamd works in"), "{report}");
    env.shut_down();
}

#[test]
fn daemon_ends_when_its_root_becomes_a_link() {
    let env = TestEnv::new();
    let mut first = start_daemon(&env, &[]);
    let away = env.path("out/away");
    std::fs::rename(env.root(), &away).unwrap();
    std::os::unix::fs::symlink(&away, env.root()).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(72));
    env.shut_down();
}

/// The daemon is stopped while another daemon starts in the recreated directories.
#[test]
fn daemon_whose_root_was_replaced_ends() {
    let env = TestEnv::new();
    let other_variables = other_directories(&env);
    let mut first = start_daemon(&env, &[]);
    let pid = first.id().to_string();
    let signal = |name: &str| Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    signal("STOP");
    std::fs::remove_dir_all(env.root().join("teams")).unwrap();
    let mut second = start_daemon(&env, &other_variables);
    signal("CONT");
    assert_eq!(first.wait().unwrap().code(), Some(69));
    assert!(daemon_answers(&env, &other_variables));
    let pid = rustix::process::Pid::from_child(&second);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    second.wait().unwrap();
    env.shut_down();
}
