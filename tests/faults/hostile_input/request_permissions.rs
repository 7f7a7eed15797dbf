//! Tests who may make which request on the control socket and call which tool of the MCP server.
//! Each is tried without a token, with a member's token and with an invalid token.

use super::command_permissions::{env_with_two_members, token_of};
use super::control_frames::call_daemon_with_token;
use harness::{McpClient, TestEnv, record_result};
use protocol::control_socket::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Who may make a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestPermission {
    /// A caller without a token: the lead or a person. A member sends some of these requests about itself alone.
    Lead,
    /// A caller without a token, or with a member's token.
    Anyone,
    /// Only a caller with a member's token.
    Member,
}

/// Each request, and who may make it. The requests are chosen so that an allowed one has no effect
/// on the test.
fn requests() -> Vec<(Value, RequestPermission)> {
    let unknown_member = json!({"team": "survey", "name": "nobody"});
    let targets = json!({"team": "survey", "names": ["nobody"]});
    vec![
        (json!("status"), RequestPermission::Anyone),
        (json!("status_with_screens"), RequestPermission::Anyone),
        (json!({"create_team": {"team": "survey", "cwd": "/", "unique": false}}), RequestPermission::Lead),
        (
            json!({"create_worktree": {"team": "survey", "name": "bob", "unique": false, "cwd": "/", "env": {}}}),
            RequestPermission::Lead,
        ),
        (
            json!({"spawn": {"team": "survey", "name": "bob", "unique": false, "argv": ["true"], "cwd": "/", "env": {},
                "prompt": "", "delivery": "pull"}}),
            RequestPermission::Lead,
        ),
        (json!({"shutdown": {"targets": targets, "grace_ms": 1, "force": false}}), RequestPermission::Lead),
        (json!({"kill": targets}), RequestPermission::Lead),
        (json!({"interrupt": unknown_member}), RequestPermission::Lead),
        (json!({"set_mode": {"team": "survey", "name": "nobody", "mode": "plan"}}), RequestPermission::Lead),
        (json!({"set_policy": {"team": "nobodys", "policy": {}}}), RequestPermission::Lead),
        (json!({"delete_team": {"team": "survey", "force": false}}), RequestPermission::Lead),
        (json!({"locate_pane": unknown_member}), RequestPermission::Lead),
        (json!({"capture_pane": unknown_member}), RequestPermission::Lead),
        (json!({"hide_pane": unknown_member}), RequestPermission::Lead),
        (json!({"show_pane": unknown_member}), RequestPermission::Lead),
        (json!({"set_layout": {"team": "survey", "layout": "tiled"}}), RequestPermission::Lead),
        (
            json!({"set_person_pane": {"team": "survey", "person_pane": {"pane": "%0", "server_pid": 1, "kept_percent": 30}}}),
            RequestPermission::Lead,
        ),
        (json!({"next_task": {"team": "survey", "owner": "nobody"}}), RequestPermission::Lead),
        // Without a token this request has no effect.
        (json!({"report_activity": "idle"}), RequestPermission::Anyone),
        (json!({"report_hook": {"event": "turn_ended"}}), RequestPermission::Member),
        (json!({"long_poll": {}}), RequestPermission::Member),
        (json!({"set_lead": {"release": "nobodys"}}), RequestPermission::Lead),
        (json!({"resume_members": {"team": "nobodys"}}), RequestPermission::Lead),
        (
            json!({"place_member": {"team": "nobodys", "name": "nobody", "candidates": [{"host": "home"}]}}),
            RequestPermission::Lead,
        ),
        (
            json!({"use_host": {"team": "nobodys", "host": "devbox", "command": ["true"]}}),
            RequestPermission::Lead,
        ),
        (json!({"await_host": {"team": "nobodys", "host": "devbox"}}), RequestPermission::Lead),
        (json!({"take_home": {"team": "nobodys"}}), RequestPermission::Lead),
        (json!({"move_home": {"team": "nobodys", "host": "devbox"}}), RequestPermission::Lead),
        (json!({"forget_host": {"host": "nowhere"}}), RequestPermission::Lead),
        (
            json!({"confirm_task": {"team": "survey", "task": "1", "owner": "nobody"}}),
            RequestPermission::Lead,
        ),
        // This request ends the daemon if it is allowed, so the test does not send it then.
        (json!({"stop_daemon": null}), RequestPermission::Lead),
    ]
}

/// `connect_shim` and `connect_home` have their own tests, and `stop_daemon_and_suspend` ends the daemon like
/// `stop_daemon`.
#[test]
fn every_request_kind_is_tested() {
    // The error of an unknown variant lists all variants.
    let error = serde_json::from_str::<Request>("\"none of them\"").unwrap_err().to_string();
    let kinds: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
    let name = |(request, _): (Value, RequestPermission)| match request {
        Value::Object(request) => request.keys().next().unwrap().clone(),
        request => request.as_str().unwrap().to_owned(),
    };
    let untested = ["connect_shim", "connect_home", "stop_daemon_and_suspend"].map(str::to_owned);
    let listed: BTreeSet<String> = requests().into_iter().map(name).chain(untested).collect();
    assert_eq!(kinds, listed.iter().map(String::as_str).collect());
}

#[test]
fn requests_check_their_caller() {
    let env = env_with_two_members();
    let bob = token_of(&env, "bob");
    // A hook's long poll is answered at once if there is a message.
    env.teamctl(["send", "bob", "x"]).expect_success();
    let mut count = 0;
    for (request, permission) in requests() {
        for (token, is_denied) in [
            (Some("none"), true),
            (Some(bob.as_str()), permission == RequestPermission::Lead),
            (None, permission == RequestPermission::Member),
        ] {
            let would_end_daemon =
                request["stop_daemon"].is_null() && request.get("stop_daemon").is_some() && !is_denied;
            if would_end_daemon {
                continue;
            }
            let reply = call_daemon_with_token(&env, token, &request);
            let was_denied = reply["failed"]["kind"] == "not_permitted";
            assert_eq!(was_denied, is_denied, "{request} with token {token:?}: {reply}");
            count += 1;
        }
    }
    assert_team_unchanged(env);
    record_result("roles-requests", count);
}

/// Each tool, and whether only the lead may call it.
const TOOLS: [(&str, bool); 15] = [
    ("SendMessage", false),
    ("TeamCreate", true),
    ("TeamDelete", true),
    ("SpawnTeammate", true),
    ("Ask", true),
    ("TaskCreate", false),
    ("TaskGet", false),
    ("TaskList", false),
    ("TaskUpdate", false),
    ("ReadInbox", false),
    ("MarkRead", false),
    ("Wait", false),
    ("Requests", true),
    ("Approve", true),
    ("Deny", true),
];

/// Arguments with which an allowed tool has no effect on the test.
fn arguments(tool: &str) -> Value {
    match tool {
        "SendMessage" => json!({"recipient": "ann", "content": "x", "summary": "s"}),
        "TeamCreate" => json!({"team_name": "../x"}),
        "Ask" => json!({"prompt": "x", "profile": "nosuch"}),
        "SpawnTeammate" => json!({"name": "../x", "prompt": "x"}),
        "TaskCreate" => json!({"subject": "x", "description": "x"}),
        "TaskGet" | "TaskUpdate" => json!({"taskId": "1"}),
        "Wait" => json!({"timeout_seconds": 0}),
        "MarkRead" => json!({"ids": []}),
        "Approve" => json!({"id": "nothing"}),
        "Deny" => json!({"id": "nothing", "reason": "r"}),
        _ => json!({}),
    }
}

#[test]
fn tools_check_their_caller() {
    let env = env_with_two_members();
    let bob = token_of(&env, "bob");
    let roles: [(&[(&str, &str)], bool); 4] = [
        (&[], true),
        (&[("TEAMD_MEMBER", "team-lead")], true),
        (&[("TEAMD_MEMBER", "bob"), ("TEAMD_TOKEN", &bob)], false),
        (&[("TEAMD_MEMBER", "bob"), ("TEAMD_TOKEN", "none")], false),
    ];
    let mut count = 0;
    for (variables, is_lead) in roles {
        let mut server = McpClient::connect_with_env(&env, &["--team", "survey"], variables);
        let listed: BTreeSet<String> = server.tools().into_iter().collect();
        assert_eq!(
            listed,
            TOOLS.map(|(tool, _)| tool.to_owned()).into(),
            "TOOLS has all tools of the server"
        );
        for (tool, is_for_lead) in TOOLS {
            let result = server.call(tool, &arguments(tool));
            let was_denied = result.as_ref().is_err_and(|error| error.contains("for the lead"));
            assert_eq!(was_denied, is_for_lead && !is_lead, "{tool} with {variables:?}: {result:?}");
            count += 1;
        }
        server.close();
    }
    assert_team_unchanged(env);
    record_result("roles-tools", count);
}

/// Checks that both members are still running, and shuts the environment down.
fn assert_team_unchanged(env: TestEnv) {
    for name in ["ann", "bob"] {
        assert_eq!(env.member(name).unwrap()["lifecycle"], "running");
    }
    env.shut_down();
}
