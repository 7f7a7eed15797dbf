//! ACP programs that cannot start or that crash, and their respawn: which errors are reported,
//! which processes end, and whether the session is kept.

use super::{
    env_with_acp_profile, payloads_to_lead, received_calls, send, shut_down_member, spawn, turn_notification,
};
use crate::dialogs::signal;
use crate::state_files::state_directory;
use harness::{TaggedProcesses, TestEnv};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

#[test]
fn crash_fails_the_turn_and_keeps_the_session() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do crash"]);
    let notification = turn_notification(&env, 1);
    assert_eq!(notification["idleReason"], "failed");
    let reason = notification["failureReason"].as_str().unwrap();
    assert!(
        reason.contains("scripted-acp-agent has ended: exit 9")
            && reason.contains("segmentation fault, nearly"),
        "{reason}"
    );
    send(&env, "do talk");
    // The failed turn may have been tried again before.
    env.wait_until("a turn succeeds", || {
        let notifications = payloads_to_lead(&env, "idle_notification");
        notifications.iter().any(|notification| notification["idleReason"] == "available").then_some(())
    });
    assert_eq!(received_calls(&env, "session/new").len(), 1);
    assert!(!received_calls(&env, "session/load").is_empty());
    shut_down_member(env);
}

#[test]
fn repeated_exits_exhaust_respawns() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do crash"]);
    for number in 1..=3 {
        turn_notification(&env, number);
        // A failed turn is tried again by itself, so ann may have ended.
        let output = env.teamctl(["send", "ann", "do crash", "--summary", "to do"]);
        assert!([0, 67].contains(&output.code), "{output:#?}");
    }
    let notification = env.wait_until("the lead is notified of the exit", || {
        payloads_to_lead(&env, "teammate_terminated").pop()
    });
    let message = notification["message"].as_str().unwrap();
    assert!(
        message.contains("it ended 3 times in a row; the last time: scripted-acp-agent has ended: exit 9"),
        "{message}"
    );
    env.shut_down();
}

/// Runs `teamctl spawn`, which must fail, and returns what it writes to stderr. `args` are the
/// arguments of the scripted agent.
fn spawn_error(args: &[&str]) -> String {
    let env = env_with_acp_profile(args);
    let output = env.teamctl(["spawn", "ann", "--profile", "scripted"]);
    assert_ne!(output.code, 0, "{output:#?}");
    assert!(env.member("ann").is_none_or(|member| member["lifecycle"] != "running"));
    env.shut_down();
    output.stderr
}

#[test]
fn failed_start_reports_why_and_leaves_no_member() {
    let error = spawn_error(&["gone"]);
    assert!(
        error.contains("scripted-acp-agent has ended: exit 3") && error.contains("cannot find my head"),
        "{error}"
    );
    let error = spawn_error(&["locked"]);
    assert!(
        error.contains("scripted-acp-agent wants you to log in first (an API key): Authentication required"),
        "{error}"
    );
    let error = spawn_error(&["old"]);
    assert!(error.contains("unsupported ACP protocol version 0"), "{error}");
}

#[test]
fn silent_program_hits_the_session_timeout() {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let env = TestEnv::new();
    let (mut shim_socket, driver_socket) = UnixStream::pair().unwrap();
    let mut command = env.command(harness::programs().join("teamd-acp"));
    command
        .args(["--session-timeout", "1", "--"])
        .arg(harness::programs().join("scripted-acp-agent"))
        .arg("mute");
    let mut driver = command.stdin(std::os::fd::OwnedFd::from(driver_socket)).spawn().unwrap();
    drop(command);
    let mut messages = String::new();
    shim_socket.read_to_string(&mut messages).unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(70));
    assert!(messages.contains("scripted-acp-agent opened no session within 1 s"), "{messages}");
    env.shut_down();
}

#[test]
fn respawn_loads_the_previous_session() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--restart", "on-failure", "--prompt", "do talk"]);
    turn_notification(&env, 1);
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let shim = env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    env.kill_process(shim.parse().unwrap());
    env.wait_until("the new process loads the session", || {
        (received_calls(&env, "session/load").len() == 1).then_some(())
    });
    env.wait_until("ann is idle again", || (env.member("ann")?["activity"] == "idle").then_some(()));
    send(&env, "do talk");
    turn_notification(&env, 2);
    shut_down_member(env);
}

/// If the daemon dies while a program opens its session, the shim and the program end. No process
/// opens a session that the next daemon does not know.
#[test]
fn opening_session_does_not_survive_teamd_unsupervised() {
    for backend in super::BACKENDS {
        let env = env_with_acp_profile(&["held"]);
        env.create_gate("out/gate");
        let cwd = env.path("").display().to_string();
        let spawn = [
            "spawn",
            "ann",
            "--profile",
            "scripted",
            "--prompt",
            "do talk",
            "--backend",
            backend,
            "--cwd",
            &cwd,
        ];
        let mut spawn_process = env.start_teamctl(spawn);
        env.wait_until("the agent is opening its session", || {
            (!received_calls(&env, "session/new").is_empty()).then_some(())
        });
        env.kill_process(env.daemon_pid());
        assert!(!spawn_process.wait().unwrap().success());
        env.start_daemon();
        env.wait_until("the shim has exited", || {
            env.processes_of(harness::FaultTarget::Shim).is_empty().then_some(())
        });
        let programs = || TaggedProcesses::with_tag(&env.process_tag()).list();
        env.wait_until("the program has exited", || {
            (!programs().concat().contains("scripted-acp-agent")).then_some(())
        });
        env.wait_until("ann is no member", || env.member("ann").is_none().then_some(()));
        assert!(received_calls(&env, "session/prompt").is_empty());
        env.shut_down();
    }
}

/// The next shim that reaches the failpoint `point` stops itself with SIGSTOP.
fn arm_stop_at_failpoint(env: &TestEnv, point: &str) {
    env.write_file("out/armed", format!("pause teamd-shim {point} 1\n"));
    env.write_file("out/hits", "");
}

/// The pid of the process that stopped at the failpoint. `None` if none has stopped.
fn stopped_pid(env: &TestEnv) -> Option<u32> {
    let hits = env.read("out/hits");
    let pid = hits.lines().find_map(|line| line.strip_prefix("acted ")?.parse().ok())?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.starts_with(" T ").then_some(pid)
}

/// The shim gets SIGTERM while it connects to the next daemon, and reports the exit after that
/// daemon has removed the record of the spawn. The agent has no pane, because tmux continues the
/// stopped process of a pane.
#[test]
fn rejected_spawn_leaves_no_exit_report() {
    let env = env_with_acp_profile(&["held"]);
    env.create_gate("out/gate");
    // A daemon gets its environment from its pane; a shim without a pane gets it from the daemon.
    env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &env.path("out").display().to_string()]);
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process"];
    let mut spawn_process = env.start_teamctl(spawn);
    env.wait_until("the agent is opening its session", || {
        (!received_calls(&env, "session/new").is_empty()).then_some(())
    });
    // A dying daemon can accept a connection, so the failpoint is armed after its end.
    env.kill_process(env.daemon_pid());
    assert!(!spawn_process.wait().unwrap().success());
    arm_stop_at_failpoint(&env, "shim.hello");
    env.start_daemon();
    let shim = env.wait_until("the shim has stopped before its hello", || stopped_pid(&env));
    let shim_process = TaggedProcesses::single(shim);
    arm_stop_at_failpoint(&env, "shim.report-exit");
    signal(shim, Signal::TERM);
    signal(shim, Signal::CONT);
    env.wait_until("the shim has stopped before its exit report", || stopped_pid(&env));
    let roster = state_directory(&env, "roster.json");
    let read_roster = || serde_json::from_slice::<Value>(&std::fs::read(&roster).ok()?).ok();
    // If the signal came before the hello, the daemon waits for the hello as long as for a start.
    env.wait_until_within(Duration::from_secs(90), "the roster has no record", || {
        read_roster()?["records"].as_array()?.is_empty().then_some(())
    });
    signal(shim, Signal::CONT);
    assert!(shim_process.exit_within(harness::TIMEOUT), "{}", env.dump_state());
    env.shut_down();
}

/// If the shim is ended while the session opens, the caller of `spawn` gets an error at once.
#[test]
fn spawn_killed_while_opening_fails() {
    let env = env_with_acp_profile(&["held"]);
    env.create_gate("out/gate");
    let cwd = env.path("").display().to_string();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process", "--cwd", &cwd];
    let spawn_process = env.start_teamctl(spawn);
    env.wait_until("the agent is opening its session", || {
        (!received_calls(&env, "session/new").is_empty()).then_some(())
    });
    let shim: u32 =
        env.processes_of(harness::FaultTarget::Shim)[0].split(' ').next().unwrap().parse().unwrap();
    std::process::Command::new("kill").arg(shim.to_string()).status().unwrap();
    let output = spawn_process.wait_with_output().unwrap();
    assert!(output.status.code().is_some_and(|code| code >= 64 && code != 75), "{output:?}");
    assert!(payloads_to_lead(&env, "teammate_terminated").is_empty());
    env.shut_down();
}
