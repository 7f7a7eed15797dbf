//! Agents die: the cause is told apart, and the lead is told once.

use harness::TestEnv;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// What the lead was told of a member's end.
fn exit_notices(env: &TestEnv, name: &str) -> Vec<String> {
    env.payloads_to_lead(name, "teammate_terminated").iter().map(|text| text["message"].to_string()).collect()
}

/// Waits for the word, and sees that the member is gone with everything of it.
fn wait_for_exit_notice(env: &TestEnv, name: &str, cause: &str) {
    env.wait_until("the lead is told", || (!exit_notices(env, name).is_empty()).then_some(()));
    env.wait_until("the member is gone", || env.member(name).is_none().then_some(()));
    let told = exit_notices(env, name);
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert!(told[0].contains(cause), "{cause}: {told:?}");
    assert!(!env.read("root/teams/survey/config.json").contains(&format!("\"{name}@")));
    let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
    assert!(!panes.lines().any(|line| line == name), "{panes}");
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
    // It survives the server.
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "children"]).expect_success();
    let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    env.kill_process(server);
    env.wait_until("the lead is told", || (!exit_notices(&env, "ann").is_empty()).then_some(()));
    assert!(exit_notices(&env, "ann")[0].contains("tmux gone"), "{:?}", exit_notices(&env, "ann"));
    env.wait_until("the member is gone", || env.member("ann").is_none().then_some(()));
    // A new server, and with it strangers' panes under the old ids; then life goes on.
    env.tmux(["new-session", "-d", "-s", "user", "--", "cat", "-"]);
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
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
    env.wait_until("its shim stores the exit report", || {
        let state = std::fs::read_dir(env.path("state/teamd")).ok()?.flatten().next()?.path();
        std::fs::read_dir(state)
            .ok()?
            .flatten()
            .find(|e| e.file_name().to_string_lossy().starts_with("exit-"))
            .map(drop)
    });
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "signal 9");
    env.shut_down();
}

#[test]
fn kill_is_completed_after_the_daemon_dies() {
    let env = TestEnv::with_team();
    let told = env.path("told");
    let deaf = format!("trap \"echo >'{}'\" TERM; while :; do read x; done", told.display());
    env.teamctl(["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", &deaf]).expect_success();
    let mut kill = env.start_teamctl(["kill", "ann"]);
    env.wait_until("its program is told", || told.exists().then_some(()));
    env.kill_process(env.daemon_pid());
    kill.wait().unwrap();
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "killed");
    let past = env.json(["status"])["teams"][0]["past_members"].clone();
    assert!(past[0]["respawns_at"].is_null() && past[0]["is_suspended"] != true, "{past}");
    env.shut_down();
}

/// Up to tmux 3.6 this crashed a server with a control client, where panes closed by themselves.
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
        env.wait_until("all are gone", || {
            (env.json(["status"])["teams"][0]["members"].as_array()?.len() == 1).then_some(())
        });
        assert_eq!(server, env.tmux(["display-message", "-p", "#{pid}"]), "round {round}");
    }
    for name in ["ann", "bob", "cat"] {
        assert_eq!(exit_notices(&env, name).len(), 5);
    }
    env.wait_until("no dead pane is left", || {
        let dead = env.tmux(["list-panes", "-a", "-F", "#{pane_dead}"]);
        (!dead.contains('1')).then_some(())
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
    env.wait_until("tmux tells of a closed pane", || {
        let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        (env.path("out/closed").exists() && !panes.contains("ann")).then_some(())
    });
    env.start_daemon();
    wait_for_exit_notice(&env, "ann", "signal 9");
    env.shut_down();
}

fn log_closed_panes(env: &TestEnv) {
    let tell = format!("run-shell 'touch {}'", env.path("out/closed").display());
    env.tmux(["set-hook", "-g", "after-kill-pane", &tell]);
}

/// Starts a shim whose daemon is the test, in a pane that has the shim's tag and stays after the shim exits. Returns the pane
/// and the connection.
fn start_shim(env: &TestEnv) -> (String, UnixStream) {
    let socket = env.path("run/test.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let program = harness::programs().join("teamd-shim").display().to_string();
    let shim = [&program, "run", "a-1", "--socket", &socket.display().to_string()];
    let words = [&["new-window", "-d", "-P", "-F", "#{pane_id}", "--"], &shim[..]].concat();
    let pane = env.run_tmux(&words).stdout.trim_end().to_owned();
    let (shim, _) = listener.accept().unwrap();
    for (option, value) in [("@teamd_spawn", "a-1"), ("remain-on-exit", "on")] {
        env.tmux(["set-option", "-p", "-t", &pane, option, value]);
    }
    log_closed_panes(env);
    std::fs::remove_file(socket).unwrap();
    (pane, shim)
}

/// Its first process has closed it itself.
fn wait_until_pane_closed(env: &TestEnv, pane: &str) {
    env.wait_until("its pane is closed", || env.path("out/closed").exists().then_some(()));
    assert!(!env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
}

/// Killed between the new pane and the roster, a daemon leaves a pane that the next one knows nothing of.
#[test]
fn pane_of_an_unknown_spawn_is_closed() {
    let env = TestEnv::new();
    let (pane, mut shim) = start_shim(&env);
    shim.write_all(b"\"refused\"\n").unwrap();
    wait_until_pane_closed(&env, &pane);
    env.shut_down();
}

/// Takes its fifteen seconds: the wait is what is told of.
#[test]
fn pane_of_a_silent_spawn_is_closed() {
    let env = TestEnv::new();
    let begin = Instant::now();
    let (pane, mut shim) = start_shim(&env);
    let mut hello = [0; 1];
    shim.read_exact(&mut hello).unwrap();
    wait_until_pane_closed(&env, &pane);
    assert!(begin.elapsed() >= Duration::from_secs(14), "a daemon under load is given its time");
    env.shut_down();
}
