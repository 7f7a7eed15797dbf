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
fn other_directories(house: &TestEnv) -> [(String, String); 2] {
    let out = house.path("out").display().to_string();
    [("XDG_STATE_HOME".to_owned(), out.clone()), ("XDG_RUNTIME_DIR".to_owned(), out)]
}

/// Not in a pane: there tmux lets whoever is stopped go on at once.
fn start_daemon(house: &TestEnv, variables: &[(String, String)]) -> Child {
    let mut teamd = house.command(harness::programs().join("teamd"));
    teamd.envs(variables.iter().cloned()).arg("-S").arg(house.tmux_socket()).stdout(Stdio::null());
    let teamd = teamd.spawn().unwrap();
    house.wait_until("the daemon answers", || daemon_answers(house, variables).then_some(()));
    teamd
}

fn daemon_answers(house: &TestEnv, variables: &[(String, String)]) -> bool {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    house.teamctl_with(&["status"], &variables).code == 0
}

/// A team can be made, and what comes there is heard of.
fn assert_supervised(house: &TestEnv, team: &str) {
    house.teamctl(["create", team]).expect_success();
    house.teamctl(["task", "create", "-t", team, "dig"]).expect_success();
    house.wait_until_within(SOON, "the task was heard of", || {
        let told = house.teamctl(["events", "-t", team]).stdout;
        told.contains("task 1 created").then_some(())
    });
    for of_the_root in ["", "teams", "tasks"] {
        let mode = house.root().join(of_the_root).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{of_the_root}");
    }
}

#[test]
fn root_to_be_created_may_be_behind_a_link() {
    let mut house = TestEnv::new();
    std::fs::remove_dir(house.root()).unwrap();
    std::os::unix::fs::symlink(house.path("."), house.path("link")).unwrap();
    let root = house.path("link/root").display().to_string();
    house.variables.push(("TEAMD_ROOT".to_owned(), root));
    house.start_daemon();
    assert_supervised(&house, "survey");
    house.teamctl(["delete", "survey"]).expect_success();
    house.shut_down();
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
    let house = TestEnv::with_team();
    let (root, daemon) = (house.root(), house.daemon_pid());
    let strokes: [(&str, &dyn Fn()); 4] = [
        ("removed", &|| std::fs::remove_dir_all(root.join("teams")).unwrap()),
        ("moved", &|| move_away(&root.join("teams"))),
        ("tasks", &|| std::fs::remove_dir_all(root.join("tasks")).unwrap()),
        ("all", &|| move_away(&root)),
    ];
    for (team, stroke) in strokes {
        stroke();
        assert_supervised(&house, team);
        let mut second = house.command(harness::programs().join("teamd"));
        let refused =
            second.envs(other_directories(&house)).arg("-S").arg(house.tmux_socket()).output().unwrap();
        assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    }
    assert_eq!(house.daemon_pid(), daemon);
    let told = house.teamctl(["events"]).stdout;
    assert!(told.contains("were removed or moved away: opened anew"), "{told}");
    house.shut_down();
}

/// As of somebody who brings back a copy.
#[test]
fn teammate_continues_in_replaced_directories() {
    let house = TestEnv::with_team();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    let done = |subject: &str| {
        house.teamctl(["task", "create", subject, "--metadata", r#"{"command": "true"}"#]).expect_success();
        house.teamctl(["send", "ann", subject]).expect_success();
        house.wait_until_within(SOON, "the task is done, and the mail read", || {
            let tasks = house.tasks("survey");
            let task = tasks.iter().find(|task| task["subject"] == subject)?;
            let read = house.inbox("survey", "ann").iter().all(|entry| entry["read"] == true);
            (task["status"] == "completed" && read).then_some(())
        });
    };
    done("at first");
    for of_the_root in ["root", "root/teams", "root/tasks"] {
        let path = house.path(of_the_root);
        move_away(&path);
        copy(&path.with_extension("away"), &path).unwrap();
        done(of_the_root);
    }
    house.shut_down();
}

/// Not made before somebody asks for it: whoever moved it may want its place for something else.
#[test]
fn missing_root_is_reported_and_recreated() {
    let house = TestEnv::with_team();
    move_away(&house.root());
    let said = house.teamctl(["doctor"]).stdout;
    assert!(said.contains("is not the directory that teamd works in"), "{said}");
    assert_supervised(&house, "next");
    let said = house.teamctl(["doctor"]).stdout;
    assert!(!said.contains("is not the directory that teamd works in"), "{said}");
    house.shut_down();
}

#[test]
fn daemon_ends_when_its_root_becomes_a_link() {
    let house = TestEnv::new();
    let mut first = start_daemon(&house, &[]);
    let away = house.path("out/away");
    std::fs::rename(house.root(), &away).unwrap();
    std::os::unix::fs::symlink(&away, house.root()).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(72));
    house.shut_down();
}

/// It may have been stopped for long.
#[test]
fn daemon_whose_root_was_replaced_ends() {
    let house = TestEnv::new();
    let others = other_directories(&house);
    let mut first = start_daemon(&house, &[]);
    let pid = first.id().to_string();
    let signal = |name: &str| Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    signal("STOP");
    std::fs::remove_dir_all(house.root().join("teams")).unwrap();
    let mut second = start_daemon(&house, &others);
    signal("CONT");
    assert_eq!(first.wait().unwrap().code(), Some(69));
    assert!(daemon_answers(&house, &others));
    let pid = rustix::process::Pid::from_child(&second);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    second.wait().unwrap();
    house.shut_down();
}
