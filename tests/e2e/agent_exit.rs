//! Agents that end by an exit, a signal, a closed pane or the death of tmux: the lead gets one
//! notification with the cause.

use harness::TestEnv;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The texts of the exit notifications about a member in the inbox of the lead.
fn exit_notices(env: &TestEnv, name: &str) -> Vec<String> {
    env.payloads_to_lead(name, "teammate_terminated").iter().map(|text| text["message"].to_string()).collect()
}

/// Waits until the lead has exactly one notification about the member's exit, with `cause`, and
/// checks that the member is neither in config.json nor in a pane.
fn wait_for_exit_notice(env: &TestEnv, name: &str, cause: &str) {
    env.wait_until("the lead is notified of the exit", || {
        (!exit_notices(env, name).is_empty()).then_some(())
    });
    env.wait_until("the member is removed", || env.member(name).is_none().then_some(()));
    let notices = exit_notices(env, name);
    assert_eq!(notices.len(), 1, "the lead is notified once: {notices:?}");
    assert!(notices[0].contains(cause), "{cause}: {notices:?}");
    assert!(!env.read("root/teams/survey/config.json").contains(&format!("\"{name}@")));
    env.wait_until("the member's pane is closed", || {
        let panes = env.run_tmux(&["list-panes", "-a", "-F", "#{@teamd_name}"]).stdout;
        (!panes.lines().any(|line| line == name)).then_some(())
    });
}

fn pane_of(env: &TestEnv, name: &str) -> String {
    env.member(name).unwrap()["pane"].as_str().unwrap().to_owned()
}

#[test]
fn exit_is_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_exit_notice(&env, "ann", "exit 3");
    env.shut_down();
}

#[test]
fn signal_is_reported() {
    let env = TestEnv::with_team();
    let pid = env.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    env.kill_process(pid as u32);
    wait_for_exit_notice(&env, "ann", "signal 9");
    env.shut_down();
}

#[test]
fn killed_pane_is_reported() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "children"]).expect_success();
    env.teamctl(["spawn", "bob", "--", "sleep", "3600"]).expect_success();
    env.tmux(["kill-pane", "-t", &pane_of(&env, "ann")]);
    wait_for_exit_notice(&env, "ann", "pane killed");
    assert_eq!(env.member("bob").unwrap()["lifecycle"], "running");
    env.shut_down();
}

#[test]
fn killed_shim_ends_its_children() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "children"]).expect_success();
    let shim = env.tmux(["display-message", "-p", "-t", &pane_of(&env, "ann"), "#{pane_pid}"]);
    env.kill_process(shim.parse().unwrap());
    wait_for_exit_notice(&env, "ann", "lost");
    env.shut_down();
}

#[test]
fn tmux_server_death_is_reported() {
    let env = TestEnv::new();
    // A daemon without a pane survives the tmux server.
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "children"]).expect_success();
    let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    env.kill_process(server);
    env.wait_until("the lead is notified of the exit", || {
        (!exit_notices(&env, "ann").is_empty()).then_some(())
    });
    assert!(exit_notices(&env, "ann")[0].contains("tmux gone"), "{:?}", exit_notices(&env, "ann"));
    env.wait_until("the member is removed", || env.member("ann").is_none().then_some(()));
    // On a new server, foreign panes have the ids of the old panes. The daemon can use that server.
    env.start_tmux_server("user");
    env.wait_until("the name is free", || {
        (env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).code == 0).then_some(())
    });
    env.teamctl(["kill", "ann"]).expect_success();
    assert!(env.tmux(["list-panes", "-a"]).lines().count() >= 1);
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn exit_without_a_daemon_is_reported_later() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let pid = env.member("ann").unwrap()["pid"].as_u64().unwrap();
    env.kill_process(env.daemon_pid());
    env.kill_process(pid as u32);
    env.wait_until("the shim has stored the exit report", || {
        let state = std::fs::read_dir(env.path("state/teamd")).ok()?.flatten().next()?.path();
        std::fs::read_dir(state)
            .ok()?
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("exit-"))
            .map(drop)
    });
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "signal 9");
    env.shut_down();
}

#[test]
fn kill_is_completed_after_the_daemon_dies() {
    let env = TestEnv::with_team();
    let (signal_file, ready_file) = (env.path("told"), env.path("ready"));
    let script = format!(
        "trap \"echo >'{}'\" TERM; echo >'{}'; while :; do read x; done",
        signal_file.display(),
        ready_file.display()
    );
    env.teamctl(["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", &script]).expect_success();
    env.wait_until("the program has set its trap", || ready_file.exists().then_some(()));
    let mut kill = env.start_teamctl(["kill", "ann"]);
    env.wait_until("the program has got SIGTERM", || signal_file.exists().then_some(()));
    env.kill_process(env.daemon_pid());
    kill.wait().unwrap();
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "killed");
    let past_members = env.json(["status"])["teams"][0]["past_members"].clone();
    assert!(
        past_members[0]["respawns_at"].is_null() && past_members[0]["is_suspended"] != true,
        "{past_members}"
    );
    env.shut_down();
}

/// Up to version 3.6, a tmux server with a control client crashes when two panes of one window
/// close by themselves at the same time.
#[test]
fn many_exits_at_once_do_not_crash_tmux() {
    let env = TestEnv::with_team();
    let server = env.tmux(["display-message", "-p", "#{pid}"]);
    for round in 0..5 {
        for name in ["ann", "bob", "cat"] {
            env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
        }
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array().unwrap().clone();
        let pids: Vec<String> =
            members.iter().filter_map(|member| member["pid"].as_u64()).map(|pid| pid.to_string()).collect();
        assert!(std::process::Command::new("kill").arg("-9").args(&pids).status().unwrap().success());
        env.wait_until("only the lead is a member", || {
            (env.json(["status"])["teams"][0]["members"].as_array()?.len() == 1).then_some(())
        });
        assert_eq!(server, env.tmux(["display-message", "-p", "#{pid}"]), "round {round}");
    }
    for name in ["ann", "bob", "cat"] {
        assert_eq!(exit_notices(&env, name).len(), 5);
    }
    env.wait_until("there is no dead pane", || {
        let dead_flags = env.tmux(["list-panes", "-a", "-F", "#{pane_dead}"]);
        (!dead_flags.contains('1')).then_some(())
    });
    env.shut_down();
}

#[test]
fn shim_closes_its_pane_without_a_daemon() {
    let env = TestEnv::with_team();
    let pid = env.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    log_closed_panes(&env);
    env.kill_process(env.daemon_pid());
    env.kill_process(pid as u32);
    env.wait_until("tmux reports a closed pane", || {
        let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        (env.path("out/closed").exists() && !panes.contains("ann")).then_some(())
    });
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "signal 9");
    env.shut_down();
}

/// Sets a tmux hook that creates `out/closed` after a `kill-pane` command.
fn log_closed_panes(env: &TestEnv) {
    let command = format!("run-shell 'touch {}'", env.path("out/closed").display());
    env.tmux(["set-hook", "-g", "after-kill-pane", &command]);
}

/// Starts a shim in a pane that has the tag of its spawn and stays open after the shim exits. The
/// test acts as the daemon. Returns the pane and the connection to the shim.
fn start_shim(env: &TestEnv) -> (String, UnixStream) {
    let socket = env.path("run/test.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let program = harness::programs().join("teamd-shim").display().to_string();
    let state = env.path("state").display().to_string();
    let shim_command =
        [&program, "run", "a-1", "--socket", &socket.display().to_string(), "--state-dir", &state];
    let args = [&["new-window", "-d", "-P", "-F", "#{pane_id}", "--"], &shim_command[..]].concat();
    let pane = env.run_tmux(&args).stdout.trim_end().to_owned();
    let (shim, _) = listener.accept().unwrap();
    for (option, value) in [("@teamd_spawn", "a-1"), ("remain-on-exit", "on")] {
        env.tmux(["set-option", "-p", "-t", &pane, option, value]);
    }
    log_closed_panes(env);
    std::fs::remove_file(socket).unwrap();
    (pane, shim)
}

/// Waits until the pane is closed by a `kill-pane` command. Only the shim can run it here.
fn wait_until_pane_closed(env: &TestEnv, pane: &str) {
    env.wait_until("the shim has closed its pane", || env.path("out/closed").exists().then_some(()));
    assert!(!env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
}

/// A daemon that is killed after it opened a pane and before it wrote the roster leaves a pane that
/// the next daemon does not know. The shim closes that pane when the next daemon refuses it.
#[test]
fn pane_of_an_unknown_spawn_is_closed() {
    let env = TestEnv::new();
    let (pane, mut shim) = start_shim(&env);
    shim.write_all(b"\"refused\"\n").unwrap();
    wait_until_pane_closed(&env, &pane);
    env.shut_down();
}

/// The shim closes its pane if the daemon does not start an agent within 15 s. The test takes that
/// long.
#[test]
fn pane_of_a_silent_spawn_is_closed() {
    let env = TestEnv::new();
    let start = Instant::now();
    let (pane, mut shim) = start_shim(&env);
    let mut hello = [0; 1];
    shim.read_exact(&mut hello).unwrap();
    wait_until_pane_closed(&env, &pane);
    assert!(start.elapsed() >= Duration::from_secs(14), "the shim waits for a slow daemon");
    env.shut_down();
}
