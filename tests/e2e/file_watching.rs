//! Detection of file changes when inotify reports too little: no watches, an overflowed event
//! queue, and recreated directories.

use harness::{TWO_WATCHES, TestEnv, can_limit_watches, record_skip};
use std::process::{Child, Command};
use std::time::Duration;

/// Starts teamd without a pane and with a limit of inotify. `None` if the user cannot set such
/// limits.
fn start_with_watch_limit(env: &TestEnv, limit: &str) -> Option<Child> {
    if !can_limit_watches() {
        record_skip("few-watches", "no user namespaces for us");
        return None;
    }
    let teamd = env.daemon_command_with_limit(limit).stdout(std::process::Stdio::null()).spawn().unwrap();
    env.wait_for_daemon();
    Some(teamd)
}

/// Spawns an agent that records each wake and the size of its inbox in `out/ann`.
fn start_recorder(env: &TestEnv) {
    let cwd = env.path("").display().to_string();
    let record = format!("exec '{}' record out/ann <&$TEAMD_WAKE_FD", env.scripted_agent_path());
    let spawn = ["spawn", "ann", "--backend", "in-process", "--cwd", &cwd, "--", "sh", "-c", &record];
    env.teamctl(spawn).expect_success();
    env.wait_until("the agent is ready", || env.read("out/ann").contains("ready").then_some(()));
}

/// Time until a wake. With events, the daemon also rescans every 30 s, so a rescan would be too
/// late. Without events it rescans every 2 s.
const WAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a message and waits until the agent is woken.
fn wait_for_wake(env: &TestEnv, text: &str) {
    env.teamctl(["send", "ann", text]).expect_success();
    wait_until_woken(env);
}

/// Waits until the agent was woken while its inbox had its present size.
fn wait_until_woken(env: &TestEnv) {
    let path = env.root().join("teams/survey/inboxes/ann.json");
    let size = std::fs::metadata(path).unwrap().len().to_string();
    env.wait_until_within(WAKE_TIMEOUT, "the agent is woken", || {
        env.read("out/ann").lines().any(|line| line.ends_with(&format!(" {size}"))).then_some(())
    });
}

fn shut_down_with_daemon(env: TestEnv, mut teamd: Child) {
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["down"]).expect_success();
    teamd.wait().unwrap();
    env.shut_down();
}

#[test]
fn files_are_polled_without_inotify() {
    for limit in ["0 > /proc/sys/user/max_inotify_instances", TWO_WATCHES] {
        let env = TestEnv::new();
        let Some(teamd) = start_with_watch_limit(&env, limit) else { return };
        env.teamctl(["create", "survey"]).expect_success();
        start_recorder(&env);
        env.wait_until("the daemon polls the files", || {
            (env.json(["status"])["daemon"]["watch_mode"] == "rescan").then_some(())
        });
        let status = env.teamctl(["status"]).expect_success();
        assert!(status.contains("cannot watch files, so it reads them every 2 s"), "{status}");
        wait_for_wake(&env, "hello");
        wait_for_wake(&env, "hello again");
        shut_down_with_daemon(env, teamd);
    }
}

/// Whether a process runs this program and sleeps.
fn is_asleep(pid: u32, program: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(&format!("({program}) S "))
}

/// Commands that wait read the files every two seconds then.
#[test]
fn commands_wait_without_inotify() {
    for limit in ["0 > /proc/sys/user/max_inotify_instances", TWO_WATCHES] {
        if !can_limit_watches() {
            return record_skip("few-watches", "no user namespaces for us");
        }
        let env = TestEnv::with_team();
        env.teamctl(["task", "create", "x"]).expect_success();
        let mut wait = env.command_with_limit(limit, "teamctl");
        let mut wait = wait.args(["wait", "--for", "tasks-done", "--timeout", "30s"]).spawn().unwrap();
        env.wait_until("the command waits", || is_asleep(wait.id(), "teamctl").then_some(()));
        env.teamctl(["task", "done", "1"]).expect_success();
        assert!(wait.wait().unwrap().success());
        if limit != TWO_WATCHES {
            let doctor = env.command_with_limit(limit, "teamctl").arg("doctor").output().unwrap();
            let doctor = String::from_utf8(doctor.stdout).unwrap();
            assert!(doctor.contains("no watch is left"), "{doctor}");
        }
        env.shut_down();
    }
}

/// The daemon has no pane, because tmux continues the stopped process of a pane at once.
#[test]
fn overflowed_events_are_found_by_a_rescan() {
    let env = TestEnv::new();
    let teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    start_recorder(&env);
    let pid = teamd.id().to_string();
    let signal = |name: &str| Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    signal("STOP");
    let inboxes = env.root().join("teams/survey/inboxes");
    let names = ["other.json", "another.json"].map(|name| inboxes.join(name));
    std::fs::File::create(&names[0]).unwrap();
    // Each rename causes two events. The default length of the queue is 16,384 events.
    let queue_length = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    for n in 0..queue_length.trim().parse::<usize>().unwrap() / 2 + 2_000 {
        rename(&names[n % 2], &names[(n + 1) % 2]);
    }
    env.teamctl(["send", "ann", "is anybody there?"]).expect_success();
    signal("CONT");
    wait_until_woken(&env);
    names.iter().for_each(|name| std::fs::remove_file(name).unwrap_or_default());
    shut_down_with_daemon(env, teamd);
}

#[allow(clippy::disallowed_methods, reason = "another program's files")]
fn rename(from: &std::path::Path, to: &std::path::Path) {
    std::fs::rename(from, to).unwrap();
}

/// Moves what is in a directory. What is removed meanwhile, such as a lock, stays away.
#[allow(clippy::disallowed_methods, reason = "another program's files")]
fn move_entries(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        if let Err(error) = std::fs::rename(from.join(&name), to.join(&name)) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name:?}");
        }
    }
}

#[test]
fn recreated_directories_are_watched() {
    let env = TestEnv::with_team();
    start_recorder(&env);
    let (inboxes, moved_directory) = (env.root().join("teams/survey/inboxes"), env.path("out/away"));
    for n in 0..20 {
        // A program that restores a team from a copy does the same.
        rename(&inboxes, &moved_directory);
        std::fs::create_dir(&inboxes).unwrap();
        // The recorder may still write in the directory that it has opened before.
        env.wait_until("the moved directory is empty", || {
            move_entries(&moved_directory, &inboxes);
            std::fs::remove_dir(&moved_directory).ok()
        });
        wait_for_wake(&env, &format!("the {n}th"));
    }
    env.shut_down();
}

/// The daemon is woken by its own writes, too. They must not cause more writes.
#[test]
fn idle_team_writes_nothing() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.teamctl(["send", "ann", "good night"]).expect_success();
    env.teamctl(["task", "create", "sleep"]).expect_success();
    let is_quiet = || env.stays_quiet_for(Duration::from_secs(3)).then_some(());
    env.wait_until_within(Duration::from_secs(20), "nothing is written for three seconds", is_quiet);
    env.shut_down();
}
