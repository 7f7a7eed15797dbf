//! Causes of `teamctl why`: ann is running and waits for an answer, a message, its program or its
//! hooks, or is stopped, at work, hidden or idle.

use super::{
    PausedProcess, assert_cause_with_options, assert_first_cause, create_task, run_suggested_command,
    spawn_idle_agent, spawn_worker, wait_until_idle,
};
use harness::TestEnv;
use serde_json::json;

/// Writes a request of ann into the lead's inbox.
fn write_request(env: &TestEnv, text: &str) {
    let status = env.command(harness::programs().join("scripted-agent")).args(["ask", "ann", text]).status();
    assert!(status.unwrap().success());
}

#[test]
fn awaiting_permission_or_plan_approval() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    write_request(
        &env,
        r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"cargo test"},"permission_suggestions":[]}"#,
    );
    let cause = assert_first_cause(&env, "awaiting_permission");
    assert!(cause["sentence"].as_str().unwrap().contains("Bash: {\"command\":\"cargo test\"}"), "{cause}");
    assert!(cause["evidence"][0].as_str().unwrap().contains("perm-1-abcdefg"), "{cause}");
    assert!(run_suggested_command(&env, &cause).contains("cargo test"));
    let ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    let output = env.teamctl_with(&["--json", "why", "ann"], &ann).json();
    assert_eq!(output["causes"][0]["cause"], "awaiting_permission");
    assert_eq!(
        output["causes"][0]["next"],
        json!(["teamctl send team-lead TEXT"]),
        "ann is not advised to answer her own request"
    );
    let answer = cause["next"][1].as_str().unwrap();
    assert!(env.command("sh").args(["-c", answer]).status().unwrap().success(), "{answer}");
    write_request(
        &env,
        r#"{"type":"plan_approval_request","from":"ann","timestamp":"2026-01-01T00:00:00.000Z","planFilePath":"","planContent":"count","requestId":"plan-1-abcdefg"}"#,
    );
    let cause = assert_first_cause(&env, "awaiting_plan_approval");
    assert!(run_suggested_command(&env, &cause).contains("submits a plan"));
    env.shut_down();
}

#[test]
fn awaiting_a_person() {
    let env = TestEnv::with_daemon();
    let policy = env.write_file(
        "policy.toml",
        "[policy]\npermissions = 'person'\nanswer_timeout = '10m'\non_timeout = 'deny'\n",
    );
    env.teamctl(["create", "survey", "--policy", &policy]).expect_success();
    spawn_idle_agent(&env);
    write_request(
        &env,
        r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":null,"permission_suggestions":[]}"#,
    );
    let output = env.wait_until("ann waits for a person", || {
        let output = env.teamctl(["why", "ann"]).expect_success();
        output.contains("asks to use Bash, and waits for the answer of a person.").then_some(output)
    });
    assert!(output.contains("the team's policy denies it in"), "{output}");
    let lead_output = env.teamctl(["why", "team-lead"]).expect_success();
    assert!(lead_output.contains("1 request of members without an answer"), "{lead_output}");
    let ann = [("TEAMD_MEMBER", "ann")];
    assert!(env.teamctl_with(&["why", "ann"], &ann).expect_success().contains("asks to use Bash"));
    env.teamctl_with(&["why", "team-lead"], &ann).expect_failure(77);
    env.shut_down();
}

#[test]
fn at_a_dialog() {
    let env = TestEnv::with_team();
    let script =
        env.write_script("asks", "#!/bin/sh\nprintf 'Do you trust it?\\n1. Yes\\n'\nexec sleep 3600\n");
    let profile = format!(
        "delivery = 'pull'\nprogram = '{}'\ndialogs = ['''Do you trust it?\n1. Yes''']\n",
        script.display()
    );
    env.write_profile("asker", &profile);
    env.teamctl(["spawn", "ann", "--profile", "asker"]).expect_success();
    assert!(run_suggested_command(&env, &assert_first_cause(&env, "at_dialog")).contains("1. Yes"));
    env.shut_down();
}

#[test]
fn in_plan_mode_without_a_plan() {
    let env = TestEnv::with_team();
    env.write_profile(
        "planner",
        "delivery = 'turn'\nprogram = 'true'\n[modes]\nplan = ['p']\ndefault = []\n",
    );
    env.teamctl(["spawn", "ann", "--profile", "planner", "--mode", "plan"]).expect_success();
    wait_until_idle(&env);
    run_suggested_command(&env, &assert_first_cause(&env, "plan_mode"));
    env.shut_down();
}

#[test]
fn awaiting_shutdown_answer() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let mut shutdown = env.start_teamctl(["shutdown", "ann", "--grace", "1m"]);
    let mut cause = env.wait_until("the request is in the event log", || {
        let cause = assert_first_cause(&env, "shutting_down");
        cause["evidence"][0].as_str()?.contains("request shutdown-").then_some(cause)
    });
    // Without an option, the command would wait for half a minute first.
    cause["next"][0] = format!("{} --grace 100ms", cause["next"][0].as_str().unwrap()).into();
    run_suggested_command(&env, &cause);
    shutdown.wait().unwrap();
    env.shut_down();
}

#[test]
fn awaiting_a_hook() {
    let env = TestEnv::with_team();
    env.write_profile("deaf", "delivery = \"hook\"\nprogram = \"sleep\"\nargs = [\"3600\"]\n");
    env.teamctl(["spawn", "ann", "--profile", "deaf"]).expect_success();
    run_suggested_command(&env, &assert_first_cause(&env, "no_hook_events"));
    env.shut_down();
}

#[test]
fn program_not_ready() {
    let env = TestEnv::with_team();
    env.write_profile(
        "mute",
        "delivery = \"acp\"\nprogram = \"sleep\"\nargs = [\"3600\"]\ninstructions = \"none\"\n",
    );
    let mut spawn = env.start_teamctl(["spawn", "ann", "--profile", "mute"]);
    run_suggested_command(&env, &assert_first_cause(&env, "starting"));
    env.teamctl(["kill", "ann"]).expect_success();
    spawn.wait().unwrap();
    env.shut_down();
}

#[test]
fn after_failed_and_interrupted_turns() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    for count in [1, 2] {
        create_task(&env, "echo the reason; exit 3");
        env.wait_until("the turn has failed", || {
            (env.payloads_to_lead("ann", "idle_notification").len() == count).then_some(())
        });
        wait_until_idle(&env);
        env.wait_until("the failed turns are in the event log", || {
            let is_failed =
                |event: &serde_json::Value| event["event"] == "member_idle" && event["reason"] == "failed";
            (env.events().iter().filter(|event| is_failed(event)).count() == count).then_some(())
        });
    }
    let cause = assert_first_cause(&env, "turns_failed");
    assert!(cause["sentence"].as_str().unwrap().contains("last 2 turns"), "{cause}");
    assert!(cause["evidence"][0].as_str().unwrap().contains("exit 3"), "{cause}");
    run_suggested_command(&env, &cause);
    env.wait_until("the third turn has failed", || {
        (env.payloads_to_lead("ann", "idle_notification").len() == 3).then_some(())
    });
    wait_until_idle(&env);
    create_task(&env, "true");
    assert_first_cause(&env, "idle");
    create_task(&env, "sleep 3600");
    env.wait_until("ann is active", || (env.member("ann")?["activity"] == "active").then_some(()));
    run_suggested_command(&env, &assert_first_cause(&env, "working"));
    run_suggested_command(&env, &assert_cause_with_options(&env, "no_output", &["--no-output-after", "1s"]));
    env.teamctl(["interrupt", "ann"]).expect_success();
    let cause = assert_first_cause(&env, "interrupted");
    assert!(cause["next"][0].as_str().unwrap().starts_with("teamctl task release"), "{cause}");
    run_suggested_command(&env, &cause);
    env.shut_down();
}

#[test]
fn hidden_and_idle() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    env.teamctl(["hide", "ann"]).expect_success();
    run_suggested_command(&env, &assert_first_cause(&env, "hidden"));
    run_suggested_command(&env, &assert_first_cause(&env, "idle"));
    env.shut_down();
}

#[test]
fn undelivered_messages() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.teamctl(["send", "ann", "one"]).expect_success();
    env.teamctl(["send", "ann", "two"]).expect_success();
    let cause = assert_first_cause(&env, "undelivered");
    assert!(run_suggested_command(&env, &cause).contains("two"));
    env.shut_down();
}

#[test]
fn stopped_process() {
    let env = TestEnv::with_team();
    let paused_process = PausedProcess::new(spawn_idle_agent(&env));
    let cause = assert_first_cause(&env, "process_stopped");
    run_suggested_command(&env, &cause);
    assert_first_cause(&env, "working");
    drop(paused_process);
    env.shut_down();
}

#[test]
fn stopped_turn_process() {
    let env = TestEnv::with_team();
    spawn_worker(&env);
    create_task(&env, "exec sleep 3600");
    let turn_pid = env.wait_until("the turn has its process", || {
        let activity_reason = env.member("ann")?["activity_reason"].as_str()?.to_owned();
        activity_reason.split_once("pid ")?.1.split(':').next()?.parse().ok()
    });
    let paused_process = PausedProcess::new(turn_pid);
    run_suggested_command(&env, &assert_first_cause(&env, "process_stopped"));
    assert_first_cause(&env, "working");
    drop(paused_process);
    env.shut_down();
}

/// ann has no pane. tmux would continue the stopped shim of a pane at once.
#[test]
fn shim_not_connected_to_new_daemon() {
    let env = TestEnv::with_team();
    let member =
        env.json(["spawn", "ann", "--backend", "in-process", "--", &env.scripted_agent_path(), "stay"]);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", member["pid"])).unwrap();
    let shim_pid = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    let paused_shim = PausedProcess::new(shim_pid);
    env.wait_until("the roster has ann's process", || {
        let state = std::fs::read_dir(env.path("state/teamd")).ok()?.flatten().next()?.path();
        let roster = std::fs::read_to_string(state.join("roster.json")).ok()?;
        roster.contains(&format!("\"agent_pid\":{}", member["pid"])).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    run_suggested_command(&env, &assert_first_cause(&env, "shim_disconnected"));
    assert_first_cause(&env, "working");
    drop(paused_shim);
    env.shut_down();
}
