//! Checks panes under bad conditions: a tmux server that is stopped or has no free descriptors, two
//! daemons on one tmux server, unusual tmux configurations, keys typed into a pane, and heavy
//! output.

use crate::dialogs::PausedTmuxServer;
use harness::{McpClient, ProcessStats, TaggedProcesses, TestEnv};
use serde_json::json;
use std::process::Child;
use std::time::Duration;

/// Starts the daemon of `env` outside tmux, on the tmux server of `server`. `limit` is shell code
/// that runs before it.
fn start_limited_daemon(env: &TestEnv, server: &TestEnv, limit: &str) -> Child {
    let mut shell = env.command("sh");
    let program = harness::programs().join("teamd");
    shell.args(["-c", &format!("{limit} exec \"$0\" -S \"$1\"")]).arg(program).arg(server.tmux_socket());
    let teamd = shell.spawn().unwrap();
    env.wait_for_daemon();
    teamd
}

fn tmux_server_pid(env: &TestEnv) -> u32 {
    env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap()
}

/// The names of a process's threads.
fn thread_names(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn unresponsive_tmux_does_not_block_messages_or_status() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let threads_before = thread_names(env.daemon_pid());
    let paused_server = PausedTmuxServer::new(&env);
    let spawn = env.start_teamctl(["spawn", "bob", "--", "sleep", "3600"]);
    let mut sender = McpClient::connect(&env, &["--team", "survey"]);
    for n in 0..1_000 {
        let message = json!({"recipient": "ann", "content": format!("the {n}th"), "summary": "s"});
        sender.call("SendMessage", &message).unwrap();
        // Each status waits for tmux for two seconds.
        if n % 250 == 0 {
            assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
        }
    }
    sender.close();
    assert_eq!(env.inbox("survey", "ann").len(), 1_000);
    let output = spawn.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    let threads = thread_names(env.daemon_pid());
    assert!(threads.len() <= threads_before.len(), "{threads_before:?}\n{threads:?}");
    drop(paused_server);
    env.wait_until("bob can be spawned again", || {
        (env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).code == 0).then_some(())
    });
    env.shut_down();
}

/// The hidden panes of both daemons are in tmux sessions of the same name.
#[test]
fn hidden_pane_of_another_root_is_left_alone() {
    let (env, other) = (TestEnv::with_team(), TestEnv::new());
    let mut teamd = start_limited_daemon(&other, &env, "");
    other.teamctl(["create", "survey"]).expect_success();
    let hide = |env: &TestEnv| {
        let pane = env.json(["spawn", "ann", "--", "sleep", "3600"])["pane"].as_str().unwrap().to_owned();
        env.teamctl(["hide", "ann"]).expect_success();
        pane
    };
    let (own_pane, other_pane) = (hide(&env), hide(&other));
    let pane_state = |pane: &str| {
        let format = "#{window_id} #{session_name} #{pane_pid} #{pane_dead}";
        env.tmux(["display-message", "-p", "-t", pane, format])
    };
    let other_state = pane_state(&other_pane);
    assert!(
        other_state.contains("_teamd-hidden") && pane_state(&own_pane).contains("_teamd-hidden"),
        "{other_state}"
    );
    env.teamctl(["show", "ann"]).expect_success();
    assert!(!pane_state(&own_pane).contains("_teamd-hidden"));
    assert_eq!(pane_state(&other_pane), other_state);
    env.teamctl(["hide", "ann"]).expect_success();
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["kill", "ann"]).expect_success();
    assert_eq!(pane_state(&other_pane), other_state);
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert_eq!(pane_state(&other_pane), other_state);
    other.teamctl(["show", "ann"]).expect_success();
    assert!(!pane_state(&other_pane).contains("_teamd-hidden"), "the other daemon can show its own pane");
    other.teamctl(["kill", "ann"]).expect_success();
    other.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    other.shut_down();
    env.shut_down();
}

#[test]
fn daemons_on_one_server_leave_each_others_panes_alone() {
    let (env, other) = (TestEnv::with_team(), TestEnv::new());
    let mut teamd = start_limited_daemon(&other, &env, "");
    other.teamctl(["create", "survey"]).expect_success();
    let spawn_pid =
        |env: &TestEnv| env.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    let (own_process, other_process) =
        (TaggedProcesses::single(spawn_pid(&env) as u32), TaggedProcesses::single(spawn_pid(&other) as u32));
    teamd.kill().unwrap();
    teamd.wait().unwrap();
    env.teamctl(["kill", "ann"]).expect_success();
    assert!(own_process.exit_within(harness::TIMEOUT));
    let mut teamd = start_limited_daemon(&other, &env, "");
    other.wait_until("ann is adopted", || (other.member("ann")?["lifecycle"] == "running").then_some(()));
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    assert!(!other_process.exit_within(Duration::ZERO));
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_success();
    other.teamctl(["kill", "ann"]).expect_success();
    other.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    assert_eq!(env.member("bob").unwrap()["lifecycle"], "running");
    other.shut_down();
    env.shut_down();
}

/// tmux needs a file descriptor for each pane, so a low limit makes further panes fail.
#[test]
fn tmux_without_descriptors_fails_spawns_completely() {
    ["tmux", "window"].into_iter().for_each(fail_spawns_without_descriptors);
}

fn fail_spawns_without_descriptors(backend: &str) {
    let env = TestEnv::new();
    let spawn = |name: &str| env.teamctl(["spawn", name, "--backend", backend, "--", "sleep", "3600"]);
    let server = TaggedProcesses::single(tmux_server_pid(&env));
    env.tmux(["kill-server"]);
    assert!(server.exit_within(harness::TIMEOUT));
    let mut shell = env.command("sh");
    shell.args(["-c", "ulimit -n 24; exec tmux -S \"$0\" new-session -d -s user -x 200 -y 50 -- cat -"]);
    assert!(shell.arg(env.tmux_socket()).status().unwrap().success());
    let mut teamd = start_limited_daemon(&env, &env, "");
    env.teamctl(["create", "survey"]).expect_success();
    let mut spawn_count = 0;
    let output = loop {
        let output = spawn(&format!("a{spawn_count}"));
        if output.code != 0 {
            break output;
        }
        spawn_count += 1;
        assert!(spawn_count < 24, "the limit of descriptors prevents a spawn");
    };
    assert!([74, 75].contains(&output.code) && spawn_count > 0, "{output:?}");
    assert_eq!(env.member(&format!("a{spawn_count}")), None);
    assert_eq!(env.read_config()["members"].as_array().unwrap().len(), 1 + spawn_count);
    env.teamctl(["kill", "a0"]).expect_success();
    env.wait_until("a pane can be opened again", || (spawn("bob").code == 0).then_some(()));
    for name in (1..spawn_count).map(|n| format!("a{n}")).chain(["bob".to_owned()]) {
        env.teamctl(["kill", &name]).expect_success();
    }
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn concurrent_spawns_of_one_name_create_one_member() {
    let env = TestEnv::with_team();
    let spawns: Vec<Child> =
        (0..16).map(|_| env.start_teamctl(["spawn", "ann", "--", "sleep", "3601"])).collect();
    let codes: Vec<i32> =
        spawns.into_iter().map(|child| child.wait_with_output().unwrap().status.code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 73).count(), 15, "{codes:?}");
    let processes = TaggedProcesses::with_tag(&env.process_tag()).list();
    assert_eq!(processes.iter().filter(|line| line.ends_with("sleep 3601")).count(), 1, "{processes:#?}");
    env.shut_down();
}

#[test]
fn keys_pressed_in_a_pane_reach_only_the_agent() {
    let env = TestEnv::with_team();
    let agent = |name: &str| {
        let member = env.json(["spawn", name, "--", "sleep", "3600"]);
        (member["pane"].as_str().unwrap().to_owned(), member["pid"].as_u64().unwrap())
    };
    let (pane, pid) = agent("ann");
    env.tmux(["send-keys", "-t", &pane, "C-z"]);
    env.wait_until("ann's process is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") T ").then_some(())
    });
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.teamctl(["send", "ann", "hello"]).expect_success();
    env.teamctl(["kill", "ann"]).expect_success();
    let (pane, _) = agent("bob");
    env.tmux(["send-keys", "-t", &pane, "C-c"]);
    env.wait_until("the lead has the exit message of bob", || {
        let messages = env.payloads_to_lead("bob", "teammate_terminated");
        messages.first()?["message"].as_str()?.contains("signal 2").then_some(())
    });
    env.shut_down();
}

/// Lines of users' tmux configurations, each of which is known to break programs that use tmux.
const CONFIGURATIONS: [&str; 12] = [
    "set -g remain-on-exit on",
    "set-hook -g after-split-window 'rename-window hooked'\nset-hook -g after-new-window 'select-window -t :{start}'",
    "set-hook -g pane-exited 'display-message -p \"%exit\"'\nset-hook -g after-kill-pane 'select-layout tiled'",
    "set -g default-command 'exec false'",
    "set -g default-shell /usr/sbin/nologin",
    "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on",
    "set -g mouse on\nset -g focus-events on\nset -g set-clipboard on",
    "set -g destroy-unattached on",
    "set -g detach-on-destroy off\nset -g exit-empty on",
    "set -s command-alias[10] 'zoom=resize-pane -Z'\nset -s command-alias[11] 'splitp=split-window'",
    "set -g synchronize-panes on\nset -g automatic-rename on\nset -g allow-rename on",
    "set -g status off\nset -g history-limit 0\nset -g escape-time 0\nunbind -a\nset -g prefix None",
];

#[test]
fn agents_work_under_twelve_tmux_configurations() {
    for conf in CONFIGURATIONS {
        // Without an attached client, this option would end the user's session.
        let env = match conf.contains("destroy-unattached on") {
            true => TestEnv::with_tmux_conf("set -g destroy-unattached off"),
            false => TestEnv::with_tmux_conf(conf),
        };
        env.tmux(["set-option", "-t", "=user:", "destroy-unattached", "off"]);
        if conf.contains("destroy-unattached on") {
            env.tmux(["set-option", "-g", "destroy-unattached", "on"]);
        }
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        for name in ["ann", "bob"] {
            env.teamctl(["spawn", name, "--", "sh", "-c", "echo it is $0; exec sleep 3600", name])
                .expect_success();
            env.wait_until(&format!("{name} has output under {conf:?}"), || {
                env.teamctl(["capture", name]).stdout.contains(name).then_some(())
            });
        }
        env.teamctl(["kill", "ann"]).expect_success();
        let names = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        let names: Vec<&str> = names.lines().filter(|name| !name.is_empty()).collect();
        assert_eq!(names, ["bob"], "{conf}");
        env.teamctl(["kill", "bob"]).expect_success();
        env.shut_down();
    }
}

#[test]
fn pane_output_does_not_load_the_daemon() {
    let env = TestEnv::with_team();
    let (daemon, cwd) = (env.daemon_pid(), env.path("").display().to_string());
    let memory_before = ProcessStats::read(daemon).unwrap().resident;
    let flood = "yes 'a flood of words' | head -c 30000000; touch out/over; exec sleep 3600";
    env.teamctl(["spawn", "ann", "--cwd", &cwd, "--", "sh", "-c", flood]).expect_success();
    env.wait_until("ann has written all output", || {
        assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
        env.path("out/over").exists().then_some(())
    });
    let growth = ProcessStats::read(daemon).unwrap().resident.saturating_sub(memory_before);
    assert!(growth < 2_048, "{growth} kB");
    env.shut_down();
}

/// The daemon raises its own limit of descriptors and allows itself no core dumps. Agents do not
/// inherit that.
#[test]
fn headless_agent_has_the_daemons_original_limits() {
    if harness::skips_without(harness::Facility::LimitsOfOtherProcesses) {
        return;
    }
    let env = TestEnv::new();
    let mut teamd = start_limited_daemon(&env, &env, "umask 027; ulimit -S -n 200; ulimit -S -c 1000;");
    env.teamctl(["create", "survey"]).expect_success();
    let cwd = env.path("").display().to_string();
    let script = "echo $(ulimit -S -n) $(ulimit -S -c) $(umask) >out/limits; exec sleep 3600";
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--cwd", &cwd, "--", "sh", "-c", script])
        .expect_success();
    let limits = env.wait_until("ann has written its limits", || {
        Some(env.read("out/limits")).filter(|text| text.ends_with('\n'))
    });
    assert_eq!(limits.trim(), "200 1000 0027");
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

/// The session of the control client was used last, so tmux chooses it for a command without a
/// target.
#[test]
fn window_that_was_opened_without_a_target_stays_with_the_user() {
    let env = TestEnv::with_team();
    let window = env.tmux(["new-window", "-d", "-P", "-F", "#{window_id}", "sleep", "3600"]);
    let session = || env.tmux(["display-message", "-p", "-t", &window, "#{session_name}"]);
    env.wait_until("the window is in a session of the user", || {
        (!session().starts_with("_teamd-")).then_some(())
    });
    env.teamctl(["down"]).expect_success();
    let windows = env.tmux(["list-windows", "-a", "-F", "#{window_id}"]);
    assert!(windows.lines().any(|line| line == window), "{windows}");
    env.tmux(["kill-window", "-t", &window]);
    env.shut_down();
}
