//! Plants `REPOSITORY.worktrees`, in which teamd creates worktrees.

use crate::attack_log::{AttackLog, check_refused};
use crate::planted::{Planted, check_unused};
use crate::user_thread::{SHARED_GID, can_be_second_user, set_mode};
use harness::TestEnv;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// A setgid directory of a shared group, as teams use it for their repositories, and in it a
/// repository with one commit.
fn create_repository(env: &TestEnv) -> String {
    let shared = env.path("shared");
    std::fs::create_dir(&shared).unwrap();
    chown(&shared, None, Some(SHARED_GID)).unwrap();
    set_mode(&shared, 0o2775);
    let script = "cd shared && git init --quiet repo && cd repo && git -c user.name=t -c \
        user.email=t@example.org \
        commit --quiet --allow-empty --message first";
    assert!(env.command("sh").args(["-c", script]).status().unwrap().success());
    shared.join("repo").display().to_string()
}

fn env_with_repository() -> (TestEnv, String) {
    let mut env = TestEnv::new();
    env.variables.push(("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()));
    let repository = create_repository(&env);
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    (env, repository)
}

fn spawn_beside(planted: Planted) -> Result<String, String> {
    let (env, repository) = env_with_repository();
    let used = planted.plant(&env, Path::new(&format!("{repository}.worktrees")));
    let output = env.teamctl(["spawn", "ann", "--worktree", "--cwd", &repository, "--", "sleep", "3600"]);
    check_unused(&used)?;
    env.shut_down();
    check_refused(&output, &[73, 74, 76, 77])
}

/// Starts the daemon with umask 002, as many systems set it, and lets it create the directory.
fn umask_of_directory() -> Result<String, String> {
    let (env, repository) = env_with_repository();
    env.teamctl(["down"]).expect_success();
    let socket = env.tmux_socket();
    let script = format!("umask 002; exec teamd -S {}", socket.display());
    let mut daemon = env.command("sh").args(["-c", &script]).spawn().unwrap();
    env.wait_for_daemon();
    env.teamctl(["spawn", "ann", "--worktree", "--cwd", &repository, "--", "sleep", "3600"]).expect_success();
    let mode = std::fs::metadata(format!("{repository}.worktrees")).unwrap().mode() & 0o7777;
    env.shut_down();
    daemon.wait().unwrap();
    if mode & 0o022 == 0 {
        Ok(format!("it has mode {mode:o}"))
    } else {
        Err(format!(
            "it has mode \
        {mode:o}"
        ))
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    for planted in Planted::ALL {
        log.record(
            format!("{planted:?} as REPOSITORY.worktrees, then spawn --worktree"),
            spawn_beside(planted),
        );
    }
    log.record(
        "writes into REPOSITORY.worktrees, made with umask 002 and a shared group",
        umask_of_directory(),
    );
}
