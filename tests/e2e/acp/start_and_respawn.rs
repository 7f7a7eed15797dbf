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
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    let told = turn_notification(&house, 1);
    assert_eq!(told["idleReason"], "failed");
    let why = told["failureReason"].as_str().unwrap();
    assert!(
        why.contains("scripted-acp-agent has ended: exit 9") && why.contains("segmentation fault, nearly"),
        "{why}"
    );
    send(&house, "do talk");
    assert_eq!(turn_notification(&house, 2)["idleReason"], "available");
    assert_eq!(
        (received_calls(&house, "session/new").len(), received_calls(&house, "session/load").len()),
        (1, 1)
    );
    shut_down_member(house);
}

#[test]
fn repeated_exits_exhaust_respawns() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    for number in 1..=3 {
        turn_notification(&house, number);
        send(&house, "do crash");
    }
    let told = house.wait_until("the lead is told", || payloads_to_lead(&house, "teammate_terminated").pop());
    let how = told["message"].as_str().unwrap();
    assert!(
        how.contains("it ended 3 times in a row; the last time: scripted-acp-agent has ended: exit 9"),
        "{how}"
    );
    house.shut_down();
}

/// `spawn`, which must fail, and what it said.
fn spawn_error(words: &[&str]) -> String {
    let house = env_with_acp_profile(words);
    let ran = house.teamctl(["spawn", "ann", "--profile", "scripted"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(house.member("ann").is_none_or(|member| member["lifecycle"] != "running"));
    house.shut_down();
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
    let house = TestEnv::new();
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut command = house.command(harness::programs().join("teamd-acp"));
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
    house.shut_down();
}

#[test]
fn respawn_loads_the_previous_session() {
    let house = env_with_acp_profile(&[]);
    spawn(&house, &["--restart", "on-failure", "--prompt", "do talk"]);
    turn_notification(&house, 1);
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let shim = house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    house.kill_process(shim.parse().unwrap());
    house.wait_until("it is there again", || {
        (received_calls(&house, "session/load").len() == 1).then_some(())
    });
    house.wait_until("it idles again", || (house.member("ann")?["activity"] == "idle").then_some(()));
    send(&house, "do talk");
    turn_notification(&house, 2);
    shut_down_member(house);
}

/// Between the green light and its first word nobody knows of it but a daemon that is dead.
#[test]
fn opening_session_does_not_survive_teamd_unsupervised() {
    for backend in super::BACKENDS {
        let house = env_with_acp_profile(&["held"]);
        house.create_gate("out/gate");
        let cwd = house.path("").display().to_string();
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
        let mut asking = house.start_teamctl(spawn);
        house.wait_until("it is about to open", || {
            (!received_calls(&house, "session/new").is_empty()).then_some(())
        });
        house.kill_process(house.daemon_pid());
        assert!(!asking.wait().unwrap().success());
        house.start_daemon();
        house.wait_until("its first process ends", || {
            house.processes_of(harness::FaultTarget::Shim).is_empty().then_some(())
        });
        let programs = || TaggedProcesses::with_tag(&house.process_tag()).list();
        house.wait_until("and it with it", || {
            (!programs().concat().contains("scripted-acp-agent")).then_some(())
        });
        house.wait_until("it is put away", || house.member("ann").is_none().then_some(()));
        assert!(received_calls(&house, "session/prompt").is_empty());
        house.shut_down();
    }
}

/// The first process of an agent that comes next to this point of a debug build stops there.
fn arm_stop_at_failpoint(house: &TestEnv, point: &str) {
    house.write_file("out/armed", format!("pause teamd-shim {point} 1\n"));
    house.write_file("out/hits", "");
}

fn stopped_pid(house: &TestEnv) -> Option<u32> {
    let passed = house.read("out/hits");
    let pid = passed.lines().find_map(|line| line.strip_prefix("acted ")?.parse().ok())?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.starts_with(" T ").then_some(pid)
}

/// It is told to end while it says hello to the next daemon, which has put it away when it tells of that. Without a pane:
/// tmux lets no first process be stopped.
#[test]
fn rejected_spawn_leaves_no_exit_report() {
    let house = env_with_acp_profile(&["held"]);
    house.create_gate("out/gate");
    // Daemons get the environment of their panes, and those without a pane that of their daemon.
    house.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &house.path("out").display().to_string()]);
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process"];
    let mut asking = house.start_teamctl(spawn);
    house.wait_until("it is about to open", || {
        (!received_calls(&house, "session/new").is_empty()).then_some(())
    });
    arm_stop_at_failpoint(&house, "shim.hello");
    house.kill_process(house.daemon_pid());
    assert!(!asking.wait().unwrap().success());
    house.start_daemon();
    let shim = house.wait_until("it is about to say hello", || stopped_pid(&house));
    let first = TaggedProcesses::single(shim);
    arm_stop_at_failpoint(&house, "shim.report-exit");
    signal(shim, Signal::TERM);
    signal(shim, Signal::CONT);
    house.wait_until("it is about to tell of its end", || stopped_pid(&house));
    let roster = state_directory(&house, "roster.json");
    let agents = || serde_json::from_slice::<Value>(&std::fs::read(&roster).ok()?).ok();
    house.wait_until("it is put away", || agents()?["records"].as_array()?.is_empty().then_some(()));
    signal(shim, Signal::CONT);
    assert!(first.exit_within(Duration::from_secs(20)), "{}", house.dump_state());
    house.shut_down();
}

/// Whoever asked is answered at once.
#[test]
fn spawn_killed_while_opening_fails() {
    let house = env_with_acp_profile(&["held"]);
    house.create_gate("out/gate");
    let cwd = house.path("").display().to_string();
    let spawn = ["spawn", "ann", "--profile", "scripted", "--backend", "in-process", "--cwd", &cwd];
    let asking = house.start_teamctl(spawn);
    house.wait_until("it is about to open", || {
        (!received_calls(&house, "session/new").is_empty()).then_some(())
    });
    let shim: u32 =
        house.processes_of(harness::FaultTarget::Shim)[0].split(' ').next().unwrap().parse().unwrap();
    std::process::Command::new("kill").arg(shim.to_string()).status().unwrap();
    let ran = asking.wait_with_output().unwrap();
    assert!(ran.status.code().is_some_and(|code| code >= 64 && code != 75), "{ran:?}");
    assert!(payloads_to_lead(&house, "teammate_terminated").is_empty());
    house.shut_down();
}
