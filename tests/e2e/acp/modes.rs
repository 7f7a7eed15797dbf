//! The mode of its session.

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
    let refused = env.teamctl(["mode", "ann", "dontAsk"]);
    assert!(refused.code == 76 && refused.stderr.contains("acceptEdits"), "{refused:#?}");
    shut_down_member(env);
}

/// What the driver says, given all of these words at once, until the end of a turn; and what its agent has heard.
fn run_driver(kind: &str, words: &[Value]) -> (Vec<Value>, String) {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let env = TestEnv::new();
    let (mut near, far) = UnixStream::pair().unwrap();
    near.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut command = env.command(harness::programs().join("teamd-acp"));
    command.args(["--plan-mode", "read", "--"]).arg(harness::programs().join("scripted-acp-agent")).arg(kind);
    command.env("ACP_HEARD", env.path("out/heard")).stdin(std::os::fd::OwnedFd::from(far));
    let mut driver = command.spawn().unwrap();
    drop(command);
    let words: Vec<String> = words.iter().map(|word| format!("{word}\n")).collect();
    near.write_all(words.concat().as_bytes()).unwrap();
    let said = BufReader::new(near.try_clone().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let mut all: Vec<Value> = Vec::new();
    for word in said {
        all.push(word);
        if all.last().is_some_and(|word| word["turn_ended"].is_object()) {
            break;
        }
    }
    drop(near);
    driver.wait().unwrap();
    let heard = env.read("out/heard");
    env.shut_down();
    (all, heard)
}

#[test]
fn turn_waits_for_a_pending_mode_change() {
    let (mode, prompt) = (json!({"set_mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (said, heard) = run_driver("slow", &[json!({"set_mode": {"id": "read"}}), mode, prompt]);
    let modes: Vec<&str> = said.iter().filter_map(|word| word["mode_set"]["id"].as_str()).collect();
    assert_eq!(
        (modes, said.last().unwrap()["turn_ended"]["end_reason"].as_str()),
        (vec!["read", "code"], Some("completed"))
    );
    let (answer, prompt) = (heard.rfind("\"id\":\"file-2\""), heard.find("session/prompt"));
    assert!(answer.is_some() && answer < prompt, "{heard}");
}

#[test]
fn turn_waiting_for_a_mode_can_be_cancelled() {
    let (mode, prompt) = (json!({"set_mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (said, heard) = run_driver("slow", &[mode, prompt, json!("cancel")]);
    assert_eq!(said.last().unwrap()["turn_ended"]["end_reason"], "cancelled");
    assert!(!heard.contains("session/prompt"), "{heard}");
}

#[test]
fn no_turn_runs_before_plan_mode_is_set() {
    let prompt = || json!({"prompt": {"text": "do talk"}});
    let (said, heard) = run_driver("free", &[json!({"set_mode": {"id": "read"}}), prompt()]);
    let why = said.last().unwrap()["turn_ended"]["end_reason"]["failed"].as_str().unwrap();
    assert!(why.contains("only reads") && why.contains("not now"), "{why}");
    assert!(!heard.contains("session/prompt"), "{heard}");
    // In any other it goes on as it was.
    let (said, heard) = run_driver("free", &[json!({"set_mode": {"id": "code"}}), prompt()]);
    assert_eq!(said.last().unwrap()["turn_ended"]["end_reason"], "completed");
    assert!(heard.contains("session/prompt"), "{heard}");
}
