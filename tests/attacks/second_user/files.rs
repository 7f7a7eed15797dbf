//! Reads and writes the victim's files and directories, whose parents are open to all users.

use crate::attack_log::AttackLog;
use crate::user_thread::{as_second_user, can_be_second_user, set_mode};
use harness::{TestEnv, files_below};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// An environment with a team that has all kinds of files: inboxes, tasks, an agent's log, its
/// environment, a policy, a journal and events.
fn env_with_files() -> TestEnv {
    let env = TestEnv::with_team();
    let script = "echo secret; exec sleep 3600";
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", script]).expect_success();
    env.teamctl(["send", "ann", "secret"]).expect_success();
    env.teamctl(["task", "create", "secret"]).expect_success();
    let policy = env.write_file("out/policy.toml", "[policy]\npermissions = \"person\"\n");
    env.teamctl(["policy", &policy]).expect_success();
    env.wait_until("the agent's log exists", || {
        files_below(&env.path("state")).iter().any(|path| path.ends_with("ann.log")).then_some(())
    });
    for directory in ["", "home", "run", "state", "root"] {
        set_mode(&env.path(directory), 0o755);
    }
    env
}

/// Tries `action` on each path as the second user. `Err` names the paths at which it succeeded.
fn try_all(
    paths: &BTreeSet<PathBuf>,
    action: impl Fn(&Path) -> std::io::Result<()> + Send + Sync,
) -> Result<String, String> {
    let succeeded = as_second_user(|| {
        let succeeds = |path: &&PathBuf| action(path).is_ok();
        paths.iter().filter(succeeds).map(|path| path.display().to_string()).collect::<Vec<_>>()
    });
    match succeeded.as_slice() {
        [] => Ok(format!("denied for all {}", paths.len())),
        paths => Err(paths.join(", ")),
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the attacker")]
fn rename_away(path: &Path) -> std::io::Result<()> {
    std::fs::rename(path, path.with_extension("stolen"))
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    let env = env_with_files();
    let top_directories =
        ["root/teams", "root/tasks", "state/teamd", "run/teamd"].map(|directory| env.path(directory));
    let files: BTreeSet<PathBuf> =
        top_directories.iter().flat_map(|directory| files_below(directory)).collect();
    let parents = files.iter().flat_map(|file| file.ancestors().skip(1));
    let inside = |parent: &&Path| top_directories.iter().any(|directory| parent.starts_with(directory));
    let directories: BTreeSet<PathBuf> = parents.filter(inside).map(Path::to_owned).collect();
    log.record(
        "reads every file of the root, state and runtime directory",
        try_all(&files, |path| File::open(path).map(drop)),
    );
    let append = |path: &Path| File::options().append(true).open(path).map(drop);
    log.record("writes every file", try_all(&files, append));
    log.record("deletes every file", try_all(&files, |path| std::fs::remove_file(path)));
    log.record("lists every directory", try_all(&directories, |path| std::fs::read_dir(path).map(drop)));
    let create = |path: &Path| File::create(path.join("planted")).map(drop);
    log.record("creates a file in every directory", try_all(&directories, create));
    log.record("renames every directory", try_all(&directories, rename_away));
    let processes = harness::TaggedProcesses::with_tag(&env.process_tag());
    let environments = processes.pids().map(|pid| PathBuf::from(format!("/proc/{pid}/environ"))).collect();
    log.record(
        "reads the environments of daemon, shims and agents in /proc",
        try_all(&environments, |path| std::fs::read(path).map(drop)),
    );
    env.shut_down();
}
