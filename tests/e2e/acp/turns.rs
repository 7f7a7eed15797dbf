//! Turns of an ACP session: what each turn receives, how it ends, what it reports to the lead, and
//! which output is shown.

use super::{
    BACKENDS, env_with_acp_profile, payloads_to_lead, read_log, received_calls, send, shut_down_member,
    spawn, turn_notification, wait_for_output,
};
use serde_json::json;

#[test]
fn each_text_is_one_turn_of_the_session() {
    for backend in BACKENDS {
        let env = env_with_acp_profile(&[]);
        spawn(&env, &["--backend", backend, "--prompt", "do talk"]);
        assert_eq!(turn_notification(&env, 1)["idleReason"], "available");
        wait_for_output(&env, "turn 1 in mode ask: \\u{1b}]0;evil\\u{7}done");
        send(&env, "do tool");
        assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
        wait_for_output(&env, "✓ look");
        wait_for_output(&env, "○ step one");
        let prompts = received_calls(&env, "session/prompt");
        assert_eq!(prompts[0]["params"]["prompt"], json!([{"type": "text", "text": "do talk"}]));
        assert!(prompts[1]["params"]["prompt"][0]["text"].as_str().unwrap().starts_with("<teammate-message"));
        let sessions = received_calls(&env, "session/new");
        assert_eq!((sessions.len(), prompts.len()), (1, 2));
        let server = &sessions[0]["params"]["mcpServers"][0];
        assert_eq!((server["name"].as_str(), &server["args"]), (Some("team"), &json!(["mcp"])));
        assert!(
            server["env"].as_array().unwrap().iter().any(|variable| variable["name"] == "TEAMD_TOKEN"),
            "{server}"
        );
        let member = env.member("ann").unwrap();
        assert_eq!(
            (member["delivery"].as_str(), member["delivery_point"].as_str()),
            (Some("acp"), Some("turn-end"))
        );
        assert!(env.inbox("survey", "ann").iter().all(|message| message["read"] == true));
        shut_down_member(env);
    }
}

#[test]
fn message_while_busy_is_the_next_turn_and_interrupt_cancels() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &["--prompt", "do wait"]);
    wait_for_output(&env, "waiting");
    send(&env, "do talk");
    let interrupted = env.json(["interrupt", "ann"]);
    assert_eq!(interrupted["was_in_turn"], true);
    assert_eq!(received_calls(&env, "session/cancel").len(), 1);
    assert_eq!(turn_notification(&env, 1)["idleReason"], "interrupted");
    assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
    assert_eq!(received_calls(&env, "session/new").len(), 1, "the process and its session are kept");
    shut_down_member(env);
}

#[test]
fn ignored_cancel_respawns_the_program_with_its_session() {
    let env = env_with_acp_profile(&["stubborn"]);
    spawn(&env, &["--prompt", "do wait"]);
    wait_for_output(&env, "waiting");
    assert_eq!(env.json(["interrupt", "ann"])["was_in_turn"], true);
    assert_eq!(turn_notification(&env, 1)["idleReason"], "interrupted");
    send(&env, "do talk");
    assert_eq!(turn_notification(&env, 2)["idleReason"], "available");
    let loads = received_calls(&env, "session/load");
    assert_eq!(loads.len(), 1);
    assert_eq!(loads[0]["params"]["sessionId"], "s-1");
    assert!(
        !read_log(&env).contains("from an earlier life"),
        "the repeated output of the session is not shown again"
    );
    shut_down_member(env);
}

#[test]
fn task_outcome_follows_the_stop_reason() {
    let env = env_with_acp_profile(&[]);
    spawn(&env, &[]);
    let create_task = |order: &str| {
        let reply = env.json(["task", "create", "it", "--description", order]);
        reply["task"]["id"].as_str().unwrap().to_owned()
    };
    for (order, status, reason) in [
        ("do talk", "completed", None),
        // A turn that succeeds comes before each failure: the task of a second failed turn in a row
        // would be tried again.
        ("do stop refusal", "failed", Some("it refused")),
        ("do talk", "completed", None),
        ("do stop max_tokens", "failed", Some("it came to its limit of tokens")),
        ("do talk", "completed", None),
        ("do fail", "failed", Some("the model is on fire")),
    ] {
        let id = create_task(order);
        let find = || {
            payloads_to_lead(&env, "idle_notification")
                .into_iter()
                .find(|notification| notification["completedTaskId"] == id.as_str())
        };
        let notification = env.wait_until(&format!("the lead is notified of the task `{order}`"), find);
        assert_eq!(notification["completedStatus"], status, "{notification}");
        if let Some(reason) = reason {
            assert!(notification["failureReason"].as_str().unwrap().contains(reason), "{notification}");
        }
    }
    shut_down_member(env);
}

#[test]
fn output_outside_the_protocol_is_shown() {
    let env = env_with_acp_profile(&["chatty"]);
    spawn(&env, &["--prompt", "do chatter"]);
    assert_eq!(turn_notification(&env, 1)["idleReason"], "available");
    for text in [
        "Loading model… \\u{1b}[31mred",
        "{\"not\": \"a message\"}",
        "warning: \\u{1b}[2Jnot a message",
        "[1, 2]",
    ] {
        wait_for_output(&env, text);
    }
    shut_down_member(env);
}

#[test]
fn file_access_is_limited_to_the_working_directory() {
    let env = env_with_acp_profile(&[]);
    let work = env.path("out/work");
    std::fs::create_dir(&work).unwrap();
    spawn(&env, &["--cwd", work.to_str().unwrap()]);
    let outside = env.path("out/outside");
    send(&env, &format!("do write {}", work.join("new").display()));
    turn_notification(&env, 1);
    assert_eq!(env.read("out/work/new"), "written\n");
    send(&env, &format!("do read {}", work.join("new").display()));
    turn_notification(&env, 2);
    wait_for_output(&env, r#"file: {"content":"written\n"}"#);
    for (number, order) in
        [(3, format!("do write {}", outside.display())), (4, "do read /etc/hostname".to_owned())]
    {
        send(&env, &order);
        turn_notification(&env, number);
    }
    wait_for_output(&env, "it lies outside of");
    assert!(!outside.exists());
    shut_down_member(env);
}
