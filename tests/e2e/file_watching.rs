//! What the daemon hears of files where the kernel tells too little: no watches, a full queue, directories made anew.

use harness::{TWO_WATCHES, TestEnv, can_limit_watches, record_skip};
use std::process::{Child, Command};
use std::time::Duration;

/// teamd without a pane, where this limit of inotify is so low; none where the kernel has no such limits for us.
fn start_with_watch_limit(env: &TestEnv, limit: &str) -> Option<Child> {
    if !can_limit_watches() {
        record_skip("few-watches", "no user namespaces for us");
        return None;
    }
    let teamd = env.daemon_command_with_limit(limit).stdout(std::process::Stdio::null()).spawn().unwrap();
    env.wait_for_daemon();
    Some(teamd)
}

fn start_recorder(env: &TestEnv) {
    let cwd = env.path("").display().to_string();
    let record = format!("exec '{}' record out/ann <&$TEAMD_WAKE_FD", env.scripted_agent_path());
    let spawn = ["spawn", "ann", "--backend", "in-process", "--cwd", &cwd, "--", "sh", "-c", &record];
    env.teamctl(spawn).expect_success();
    env.wait_until("it is ready", || env.read("out/ann").contains("ready").then_some(()));
}

/// Where events arrive everything is looked at each 30 s besides, and where none do each 2 s.
const SOON: Duration = Duration::from_secs(10);

/// A message, and the agent was woken with all of its inbox there.
fn wait_for_wake(env: &TestEnv, text: &str) {
    env.teamctl(["send", "ann", text]).expect_success();
    assert_woken(env);
}

fn assert_woken(env: &TestEnv) {
    let path = env.root().join("teams/survey/inboxes/ann.json");
    let size = std::fs::metadata(path).unwrap().len().to_string();
    env.wait_until_within(SOON, "it was woken", || {
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
        env.wait_until("it is known", || {
            (env.json(["status"])["daemon"]["watch_mode"] == "rescan").then_some(())
        });
        wait_for_wake(&env, "hello");
        wait_for_wake(&env, "hello again");
        shut_down_with_daemon(env, teamd);
    }
}

/// Not in a pane: there tmux lets whoever is stopped go on at once.
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
    // Two events each; the queue has room for 16,384, unless somebody has said otherwise.
    let queue = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    for n in 0..queue.trim().parse::<usize>().unwrap() / 2 + 2_000 {
        rename(&names[n % 2], &names[(n + 1) % 2]);
    }
    env.teamctl(["send", "ann", "is anybody there?"]).expect_success();
    signal("CONT");
    assert_woken(&env);
    names.iter().for_each(|name| std::fs::remove_file(name).unwrap_or_default());
    shut_down_with_daemon(env, teamd);
}

#[allow(clippy::disallowed_methods, reason = "another program's files")]
fn rename(from: &std::path::Path, to: &std::path::Path) {
    std::fs::rename(from, to).unwrap();
}

#[test]
fn recreated_directories_are_watched() {
    let env = TestEnv::with_team();
    start_recorder(&env);
    let (inboxes, away) = (env.root().join("teams/survey/inboxes"), env.path("out/away"));
    for n in 0..20 {
        // As a program does that copies a team back from somewhere.
        rename(&inboxes, &away);
        std::fs::create_dir(&inboxes).unwrap();
        for entry in std::fs::read_dir(&away).unwrap() {
            let path = entry.unwrap().path();
            rename(&path, &inboxes.join(path.file_name().unwrap()));
        }
        std::fs::remove_dir(&away).unwrap();
        wait_for_wake(&env, &format!("the {n}th"));
    }
    env.shut_down();
}

/// What the daemon writes itself wakes it too.
#[test]
fn idle_team_writes_nothing() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.teamctl(["send", "ann", "good night"]).expect_success();
    env.teamctl(["task", "create", "sleep"]).expect_success();
    let rests = || env.stays_quiet_for(Duration::from_secs(3)).then_some(());
    env.wait_until_within(Duration::from_secs(20), "nothing is written for three seconds", rests);
    env.shut_down();
}
