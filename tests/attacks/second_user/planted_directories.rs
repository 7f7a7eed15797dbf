//! Plants the runtime directory, the state directory and their parents before the daemon starts.

use crate::attack_log::{AttackLog, NOT_PERMITTED, check_refused};
use crate::planted::{Planted, check_unused};
use crate::user_thread::{can_be_second_user, set_mode};
use harness::{TaggedProcesses, TestEnv};
use protocol::state_and_runtime_directories::{Directories, DirectoryEnvironment};
use std::path::PathBuf;
use std::time::Duration;

/// The codes with which `up` may refuse a planted directory: it cannot be trusted, used or created.
const REFUSED: [i32; 5] = [NOT_PERMITTED, 73, 74, 65, 69];

fn directories(env: &TestEnv) -> Directories {
    let environment = DirectoryEnvironment {
        runtime_dir: Some(env.path("run")),
        state_home: Some(env.path("state")),
        home: Some(env.path("home")),
        uid: 0,
    };
    Directories::for_root(&env.root(), &environment)
}

/// The paths at which the test plants, each with its purpose for teamd.
fn planted_paths(env: &TestEnv) -> [(&'static str, PathBuf); 5] {
    let Directories { state_dir, .. } = directories(env);
    let runtime_dir = directories(env).control_socket().parent().unwrap().to_owned();
    [
        ("parent of the runtime directory", env.path("run/teamd")),
        ("runtime directory", runtime_dir),
        ("parent of the state directory", env.path("state/teamd")),
        ("state directory", state_dir),
        ("root", env.root()),
    ]
}

fn start_with(planted: Planted, index: usize) -> Result<String, String> {
    let env = TestEnv::new();
    let (_, path) = &planted_paths(&env)[index];
    ["", "run", "state", "home"].iter().for_each(|name| set_mode(&env.path(name), 0o755));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if *path == env.root() {
        std::fs::remove_dir(path).unwrap();
    }
    let used = planted.plant(&env, path);
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let up = || env.teamctl_with(&["up"], &[("TMUX", &tmux)]);
    let output = env.with_timeout(Duration::from_secs(60), up);
    check_unused(&used)?;
    let daemons = TaggedProcesses::with_tag(&env.process_tag()).list();
    let is_daemon = |line: &&String| line.split(' ').any(|word| word.ends_with("/teamd"));
    match daemons.iter().find(is_daemon) {
        Some(daemon) => Err(format!("{daemon} runs")),
        None => check_refused(&output, &REFUSED),
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    let names = planted_paths(&TestEnv::new()).map(|(name, _)| name);
    for (index, name) in names.iter().enumerate() {
        for planted in Planted::ALL {
            log.record(format!("{planted:?} as {name}, then up"), start_with(planted, index));
        }
    }
}
