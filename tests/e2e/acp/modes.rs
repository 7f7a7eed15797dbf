//! Permission modes of a session: set at its start, changed later, and the order of a mode change
//! and a turn.

use super::{env_with_acp_profile, send, shut_down_member, spawn, wait_for_output};
use harness::TestEnv;
use serde_json::{Value, json};

#[test]
fn mode_is_set_at_start_and_later() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--mode", "default", "--prompt", "do talk"]);
    wait_for_output(&env, "turn 1 in mode ask");
    let mode = json!({"type": "mode_set_request", "mode": "acceptEdits", "from": "team-lead"});
    env.teamctl(["send", "ann", &mode.to_string(), "--summary", "mode"]).expect_success();
    send(&env, "do talk");
    wait_for_output(&env, "turn 2 in mode code");
    let output = env.teamctl(["mode", "ann", "dontAsk"]);
    assert!(output.code == 76 && output.stderr.contains("acceptEdits"), "{output:#?}");
    shut_down_member(env);
}

/// Starts the driver, with the test in place of the shim. Sends it `messages` without a pause and
/// reads its messages until a turn ends. Returns these messages and the log of what the agent
/// received. `option` is an option of the scripted agent.
fn run_driver(option: &str, messages: &[Value]) -> (Vec<Value>, String) {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let env = TestEnv::new();
    let (mut shim_socket, driver_socket) = UnixStream::pair().unwrap();
    shim_socket.set_read_timeout(Some(harness::TIMEOUT)).unwrap();
    let mut command = env.command(harness::programs().join("teamd-acp"));
    command
        .args(["--plan-mode", "read", "--"])
        .arg(harness::programs().join("scripted-acp-agent"))
        .arg(option);
    command.env("ACP_HEARD", env.path("out/heard")).stdin(std::os::fd::OwnedFd::from(driver_socket));
    let mut driver = command.spawn().unwrap();
    drop(command);
    let lines: Vec<String> = messages.iter().map(|message| format!("{message}\n")).collect();
    shim_socket.write_all(lines.concat().as_bytes()).unwrap();
    let replies = BufReader::new(shim_socket.try_clone().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let mut received: Vec<Value> = Vec::new();
    for reply in replies {
        received.push(reply);
        if received.last().is_some_and(|reply| reply["turn_ended"].is_object()) {
            break;
        }
    }
    drop(shim_socket);
    driver.wait().unwrap();
    let agent_log = env.read("out/heard");
    env.shut_down();
    (received, agent_log)
}

#[test]
fn turn_waits_for_a_pending_mode_change() {
    let (mode, prompt) = (json!({"set_mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (messages, agent_log) = run_driver("slow", &[json!({"set_mode": {"id": "read"}}), mode, prompt]);
    let modes: Vec<&str> = messages.iter().filter_map(|message| message["mode_set"]["id"].as_str()).collect();
    assert_eq!(
        (modes, messages.last().unwrap()["turn_ended"]["end_reason"].as_str()),
        (vec!["read", "code"], Some("completed"))
    );
    // With `slow`, each mode change ends after the driver's reply to a file request.
    let (mode_change, prompt) = (agent_log.rfind("\"id\":\"file-2\""), agent_log.find("session/prompt"));
    assert!(mode_change.is_some() && mode_change < prompt, "{agent_log}");
}

#[test]
fn turn_waiting_for_a_mode_can_be_cancelled() {
    let (mode, prompt) = (json!({"set_mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (messages, agent_log) = run_driver("slow", &[mode, prompt, json!("cancel")]);
    assert_eq!(messages.last().unwrap()["turn_ended"]["end_reason"], "cancelled");
    assert!(!agent_log.contains("session/prompt"), "{agent_log}");
}

#[test]
fn no_turn_runs_before_plan_mode_is_set() {
    let prompt = || json!({"prompt": {"text": "do talk"}});
    let (messages, agent_log) = run_driver("free", &[json!({"set_mode": {"id": "read"}}), prompt()]);
    let reason = messages.last().unwrap()["turn_ended"]["end_reason"]["failed"].as_str().unwrap();
    assert!(reason.contains("only reads") && reason.contains("not now"), "{reason}");
    assert!(!agent_log.contains("session/prompt"), "{agent_log}");
    // If the program rejects any other mode, the turn runs in the previous mode.
    let (messages, agent_log) = run_driver("free", &[json!({"set_mode": {"id": "code"}}), prompt()]);
    assert_eq!(messages.last().unwrap()["turn_ended"]["end_reason"], "completed");
    assert!(agent_log.contains("session/prompt"), "{agent_log}");
}
