//! Who may ask what, beside the verbs: each request of the control socket and each tool of the MCP server, by whoever has
//! no token, a member's, and one that is none.

use super::command_permissions::{env_with_two_members, token_of};
use super::control_frames::call_daemon_with_token;
use harness::{McpClient, TestEnv, record_result};
use protocol::control::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Whose a request is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestPermission {
    /// Not a member's.
    Lead,
    /// Anybody's.
    Anyone,
    /// A member's alone, which is known by its token.
    Member,
}

/// In a form that does no harm where it is allowed.
fn requests() -> Vec<(Value, RequestPermission)> {
    let nobody = json!({"team": "survey", "name": "nobody"});
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
        (json!({"interrupt": nobody}), RequestPermission::Lead),
        (json!({"set_mode": {"team": "survey", "name": "nobody", "mode": "plan"}}), RequestPermission::Lead),
        (json!({"set_policy": {"team": "nobodys", "policy": {}}}), RequestPermission::Lead),
        (json!({"delete_team": {"team": "survey", "force": false}}), RequestPermission::Lead),
        (json!({"locate_pane": nobody}), RequestPermission::Anyone),
        (json!({"capture_pane": nobody}), RequestPermission::Anyone),
        (json!({"hide_pane": nobody}), RequestPermission::Lead),
        (json!({"show_pane": nobody}), RequestPermission::Lead),
        (json!({"set_layout": {"team": "survey", "layout": "tiled"}}), RequestPermission::Lead),
        (json!({"next_task": {"team": "survey", "owner": "nobody"}}), RequestPermission::Anyone),
        // Of whoever has no token it says nothing.
        (json!({"report_activity": "idle"}), RequestPermission::Anyone),
        (json!({"report_hook": {"event": "turn_ended"}}), RequestPermission::Member),
        (json!({"long_poll": {}}), RequestPermission::Member),
        (json!({"set_lead": {"release": "nobodys"}}), RequestPermission::Lead),
        (json!({"resume_members": {"team": "nobodys"}}), RequestPermission::Lead),
        // Last, since whoever may would end it; nobody's that is not the first line of a first process.
        (json!({"stop_daemon": null}), RequestPermission::Lead),
    ]
}

/// `connect_shim` has tests of its own, and `stop_daemon_and_suspend` ends the daemon as `stop_daemon` does.
#[test]
fn every_request_kind_is_tested() {
    let told = serde_json::from_str::<Request>("\"none of them\"").unwrap_err().to_string();
    let known: BTreeSet<&str> = told.split('`').skip(3).step_by(2).collect();
    let name = |(request, _): (Value, RequestPermission)| match request {
        Value::Object(request) => request.keys().next().unwrap().clone(),
        request => request.as_str().unwrap().to_owned(),
    };
    let untested = ["connect_shim", "stop_daemon_and_suspend"].map(str::to_owned);
    let tried: BTreeSet<String> = requests().into_iter().map(name).chain(untested).collect();
    assert_eq!(known, tried.iter().map(String::as_str).collect());
}

#[test]
fn requests_check_their_caller() {
    let env = env_with_two_members();
    let bob = token_of(&env, "bob");
    // So that a hook that waits for mail is answered.
    env.teamctl(["send", "bob", "x"]).expect_success();
    let mut tried = 0;
    for (request, may) in requests() {
        for (token, refused) in [
            (Some("none"), true),
            (Some(bob.as_str()), may == RequestPermission::Lead),
            (None, may == RequestPermission::Member),
        ] {
            let is_last =
                request["stop_daemon"].is_null() && request.get("stop_daemon").is_some() && !refused;
            if is_last {
                continue;
            }
            let answer = call_daemon_with_token(&env, token, &request);
            let is_refused = answer["failed"]["kind"] == "not_permitted";
            assert_eq!(is_refused, refused, "{request} by {token:?}: {answer}");
            tried += 1;
        }
    }
    assert_team_unchanged(env);
    record_result("roles-requests", tried);
}

/// What the lead alone may.
const TOOLS: [(&str, bool); 14] = [
    ("SendMessage", false),
    ("TeamCreate", true),
    ("TeamDelete", true),
    ("SpawnTeammate", true),
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

/// In a form that does no harm where it is allowed.
fn arguments(tool: &str) -> Value {
    match tool {
        "SendMessage" => json!({"recipient": "ann", "content": "x", "summary": "s"}),
        "TeamCreate" => json!({"team_name": "../x"}),
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
    let mut tried = 0;
    for (variables, leads) in roles {
        let mut server = McpClient::connect_with_env(&env, &["--team", "survey"], variables);
        let listed: BTreeSet<String> = server.tools().into_iter().collect();
        assert_eq!(listed, TOOLS.map(|(tool, _)| tool.to_owned()).into(), "none is forgotten");
        for (tool, is_leads) in TOOLS {
            let said = server.call(tool, &arguments(tool));
            let is_refused = said.as_ref().is_err_and(|why| why.contains("for the lead"));
            assert_eq!(is_refused, is_leads && !leads, "{tool} with {variables:?}: {said:?}");
            tried += 1;
        }
        server.close();
    }
    assert_team_unchanged(env);
    record_result("roles-tools", tried);
}

fn assert_team_unchanged(env: TestEnv) {
    for name in ["ann", "bob"] {
        assert_eq!(env.member(name).unwrap()["lifecycle"], "running");
    }
    env.shut_down();
}
