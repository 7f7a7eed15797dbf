//! The directories of a root that somebody removes or moves away under its daemon.

#![allow(clippy::disallowed_methods, reason = "the tests are that somebody")]

use harness::TestEnv;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where events arrive everything is looked at each 30 s besides.
const SOON: Duration = Duration::from_secs(10);

/// The variables of somebody of the same user with directories of their own.
fn other_directories(env: &TestEnv) -> [(String, String); 2] {
    let out = env.path("out").display().to_string();
    [("XDG_STATE_HOME".to_owned(), out.clone()), ("XDG_RUNTIME_DIR".to_owned(), out)]
}

/// Not in a pane: there tmux lets whoever is stopped go on at once.
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

/// A team can be made, and what comes there is heard of.
fn assert_supervised(env: &TestEnv, team: &str) {
    env.teamctl(["create", team]).expect_success();
    env.teamctl(["task", "create", "-t", team, "dig"]).expect_success();
    env.wait_until_within(SOON, "the task was heard of", || {
        let told = env.teamctl(["events", "-t", team]).stdout;
        told.contains("task 1 created").then_some(())
    });
    for of_the_root in ["", "teams", "tasks"] {
        let mode = env.root().join(of_the_root).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{of_the_root}");
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

/// Without locks and files on their way, which are somebody's, for a moment, and may be gone meanwhile.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let is_fleeting = |name: &str| [".lock", ".tmp.", ".shadow"].iter().any(|part| name.contains(part));
        match entry.file_type()?.is_dir() {
            _ if entry.file_name().to_str().is_some_and(is_fleeting) => {}
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
    let strokes: [(&str, &dyn Fn()); 4] = [
        ("removed", &|| std::fs::remove_dir_all(root.join("teams")).unwrap()),
        ("moved", &|| move_away(&root.join("teams"))),
        ("tasks", &|| std::fs::remove_dir_all(root.join("tasks")).unwrap()),
        ("all", &|| move_away(&root)),
    ];
    for (team, stroke) in strokes {
        stroke();
        assert_supervised(&env, team);
        let mut second = env.command(harness::programs().join("teamd"));
        let refused = second.envs(other_directories(&env)).arg("-S").arg(env.tmux_socket()).output().unwrap();
        assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    }
    assert_eq!(env.daemon_pid(), daemon);
    let told = env.teamctl(["events"]).stdout;
    assert!(told.contains("were removed or moved away: opened anew"), "{told}");
    env.shut_down();
}

/// As of somebody who brings back a copy.
#[test]
fn teammate_continues_in_replaced_directories() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let done = |subject: &str| {
        env.teamctl(["task", "create", subject, "--metadata", r#"{"command": "true"}"#]).expect_success();
        env.teamctl(["send", "ann", subject]).expect_success();
        env.wait_until_within(SOON, "the task is done, and the mail read", || {
            let tasks = env.tasks("survey");
            let task = tasks.iter().find(|task| task["subject"] == subject)?;
            let read = env.inbox("survey", "ann").iter().all(|entry| entry["read"] == true);
            (task["status"] == "completed" && read).then_some(())
        });
    };
    done("at first");
    for of_the_root in ["root", "root/teams", "root/tasks"] {
        let path = env.path(of_the_root);
        move_away(&path);
        copy(&path.with_extension("away"), &path).unwrap();
        done(of_the_root);
    }
    env.shut_down();
}

/// Not made before somebody asks for it: whoever moved it may want its place for something else.
#[test]
fn missing_root_is_reported_and_recreated() {
    let env = TestEnv::with_team();
    move_away(&env.root());
    let said = env.teamctl(["doctor"]).stdout;
    assert!(said.contains("is not the directory that teamd works in"), "{said}");
    assert_supervised(&env, "next");
    let said = env.teamctl(["doctor"]).stdout;
    assert!(!said.contains("is not the directory that teamd works in"), "{said}");
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

/// It may have been stopped for long.
#[test]
fn daemon_whose_root_was_replaced_ends() {
    let env = TestEnv::new();
    let others = other_directories(&env);
    let mut first = start_daemon(&env, &[]);
    let pid = first.id().to_string();
    let signal = |name: &str| Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    signal("STOP");
    std::fs::remove_dir_all(env.root().join("teams")).unwrap();
    let mut second = start_daemon(&env, &others);
    signal("CONT");
    assert_eq!(first.wait().unwrap().code(), Some(69));
    assert!(daemon_answers(&env, &others));
    let pid = rustix::process::Pid::from_child(&second);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    second.wait().unwrap();
    env.shut_down();
}
