//! A program that can not begin, ends before its time, or comes back.

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
    let told = turn_notification(&env, 1);
    assert_eq!(told["idleReason"], "failed");
    let why = told["failureReason"].as_str().unwrap();
    assert!(
        why.contains("scripted-acp-agent has ended: exit 9") && why.contains("segmentation fault, nearly"),
        "{why}"
    );
    send(&env, "do talk");
    assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
    assert_eq!(
        (received_calls(&env, "session/new").len(), received_calls(&env, "session/load").len()),
        (1, 1)
    );
    shut_down_member(env);
}

#[test]
fn repeated_exits_exhaust_respawns() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do crash"]);
    for number in 1..=3 {
        turn_notification(&env, number);
        send(&env, "do crash");
    }
    let told = env.wait_until("the lead is told", || payloads_to_lead(&env, "teammate_terminated").pop());
    let how = told["message"].as_str().unwrap();
    assert!(
        how.contains("it ended 3 times in a row; the last time: scripted-acp-agent has ended: exit 9"),
        "{how}"
    );
    env.shut_down();
}

/// `spawn`, which must fail, and what it said.
fn spawn_error(words: &[&str]) -> String {
    let env = env_with_acp_profile(words);
    let ran = env.teamctl(["spawn", "ann", "--profile", "scripted"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(env.member("ann").is_none_or(|member| member["lifecycle"] != "running"));
    env.shut_down();
    ran.stderr
}

#[test]
fn failed_start_reports_why_and_leaves_no_member() {
    let said = spawn_error(&["gone"]);
    assert!(
        said.contains("scripted-acp-agent has ended: exit 3") && said.contains("cannot find my head"),
        "{said}"
    );
    let said = spawn_error(&["locked"]);
    assert!(
        said.contains("scripted-acp-agent wants you to log in first (an API key): Authentication required"),
        "{said}"
    );
    let said = spawn_error(&["old"]);
    assert!(said.contains("unsupported ACP protocol version 0"), "{said}");
}

#[test]
fn silent_program_hits_the_session_timeout() {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let env = TestEnv::new();
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut command = env.command(harness::programs().join("teamd-acp"));
    command
        .args(["--session-timeout", "1", "--"])
        .arg(harness::programs().join("scripted-acp-agent"))
        .arg("mute");
    let mut driver = command.stdin(std::os::fd::OwnedFd::from(far)).spawn().unwrap();
    drop(command);
    let mut said = String::new();
    near.read_to_string(&mut said).unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(70));
    assert!(said.contains("scripted-acp-agent opened no session within 1 s"), "{said}");
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
    env.wait_until("it is there again", || (received_calls(&env, "session/load").len() == 1).then_some(()));
    env.wait_until("it idles again", || (env.member("ann")?["activity"] == "idle").then_some(()));
    send(&env, "do talk");
    turn_notification(&env, 2);
    shut_down_member(env);
}

/// Between the green light and its first word nobody knows of it but a daemon that is dead.
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
        let mut asking = env.start_teamctl(spawn);
        env.wait_until("it is about to open", || {
            (!received_calls(&env, "session/new").is_empty()).then_some(())
        });
        env.kill_process(env.daemon_pid());
        assert!(!asking.wait().unwrap().success());
        env.start_daemon();
        env.wait_until("its first process ends", || {
            env.processes_of(harness::FaultTarget::Shim).is_empty().then_some(())
        });
        let programs = || TaggedProcesses::with_tag(&env.process_tag()).list();
        env.wait_until("and it with it", || {
            (!programs().concat().contains("scripted-acp-agent")).then_some(())
        });
        env.wait_until("it is put away", || env.member("ann").is_none().then_some(()));
        assert!(received_calls(&env, "session/prompt").is_empty());
        env.shut_down();
    }
}

/// The first process of an agent that comes next to this point of a debug build stops there.
fn arm_stop_at_failpoint(env: &TestEnv, point: &str) {
    env.write_file("out/armed", format!("pause teamd-shim {point} 1\n"));
    env.write_file("out/hits", "");
}

fn stopped_pid(env: &TestEnv) -> Option<u32> {
    let passed = env.read("out/hits");
    let pid = passed.lines().find_map(|line| line.strip_prefix("acted ")?.parse().ok())?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.starts_with(" T ").then_some(pid)
}

/// It is told to end while it says hello to the next daemon, which has put it away when it tells of that. Without a pane:
/// tmux lets no first process be stopped.
#[test]
fn rejected_spawn_leaves_no_exit_report() {
    let env = env_with_acp_profile(&["held"]);
    env.create_gate("out/gate");
    // Daemons get the environment of their panes, and those without a pane that of their daemon.
    env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &env.path("out").display().to_string()]);
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process"];
    let mut asking = env.start_teamctl(spawn);
    env.wait_until("it is about to open", || (!received_calls(&env, "session/new").is_empty()).then_some(()));
    arm_stop_at_failpoint(&env, "shim.hello");
    env.kill_process(env.daemon_pid());
    assert!(!asking.wait().unwrap().success());
    env.start_daemon();
    let shim = env.wait_until("it is about to say hello", || stopped_pid(&env));
    let first = TaggedProcesses::single(shim);
    arm_stop_at_failpoint(&env, "shim.report-exit");
    signal(shim, Signal::TERM);
    signal(shim, Signal::CONT);
    env.wait_until("it is about to tell of its end", || stopped_pid(&env));
    let roster = state_directory(&env, "roster.json");
    let agents = || serde_json::from_slice::<Value>(&std::fs::read(&roster).ok()?).ok();
    env.wait_until("it is put away", || agents()?["records"].as_array()?.is_empty().then_some(()));
    signal(shim, Signal::CONT);
    assert!(first.exit_within(Duration::from_secs(20)), "{}", env.dump_state());
    env.shut_down();
}

/// Whoever asked is answered at once.
#[test]
fn spawn_killed_while_opening_fails() {
    let env = env_with_acp_profile(&["held"]);
    env.create_gate("out/gate");
    let cwd = env.path("").display().to_string();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process", "--cwd", &cwd];
    let asking = env.start_teamctl(spawn);
    env.wait_until("it is about to open", || (!received_calls(&env, "session/new").is_empty()).then_some(()));
    let shim: u32 =
        env.processes_of(harness::FaultTarget::Shim)[0].split(' ').next().unwrap().parse().unwrap();
    std::process::Command::new("kill").arg(shim.to_string()).status().unwrap();
    let ran = asking.wait_with_output().unwrap();
    assert!(ran.status.code().is_some_and(|code| code >= 64 && code != 75), "{ran:?}");
    assert!(payloads_to_lead(&env, "teammate_terminated").is_empty());
    env.shut_down();
}
