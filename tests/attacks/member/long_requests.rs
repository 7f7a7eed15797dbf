//! Requests on the control socket with a text over its limit.

use serde_json::{Value, json};

/// A text that fits into a request of 8 MiB, and is over every limit.
pub(super) fn long_text() -> String {
    "x".repeat(7 << 20)
}

/// Requests with a long text in each field: those of a member and those of a person. A member can
/// omit its token, so that the daemon takes it for a person.
pub(super) fn long_requests() -> Vec<(&'static str, Value)> {
    let text = long_text();
    let hook = |event: Value| json!({"report_hook": {"session_id": "s", "event": event}});
    let spawn = |field: &str, value: Value| {
        let mut spawn = json!({"team": "survey", "name": "x", "unique": false, "argv": ["true"],
            "cwd": "/", "env": {},
            "prompt": "", "delivery": "pull"});
        spawn[field] = value;
        json!({"spawn": spawn})
    };
    let targets = json!({"team": "survey", "names": ["bob"]});
    vec![
        ("a session id", json!({"report_hook": {"session_id": text, "event": "session_started"}})),
        ("a turn summary", hook(json!({"turn_started": {"summary": text}}))),
        (
            "delivered ids",
            hook(json!({"turn_started": {"summary": "x", "delivered_ids": vec![u64::MAX; 300_000]}})),
        ),
        ("a dialog", hook(json!({"dialog_shown": {"text": text}}))),
        (
            "a session id of usage",
            json!({"report_hook": {"session_id": "s", "event": "turn_ended",
            "usage": {"session_id": text, "usage": {"tokens": 1}}}}),
        ),
        (
            "ancestors",
            json!({"report_hook": {"session_id": "s", "event": "turn_ended",
            "ancestors": vec![json!({"pid": 1, "start_time": u64::MAX}); 100_000]}}),
        ),
        ("the name of a pane's member", json!({"locate_pane": {"team": "survey", "name": text}})),
        ("the owner of a task", json!({"next_task": {"team": "survey", "owner": text}})),
        ("a spawn's prompt", spawn("prompt", json!(text))),
        ("a spawn's argument", spawn("argv", json!([text]))),
        ("a spawn's environment", spawn("env", json!({"X": text}))),
        ("a spawn's directory", spawn("cwd", json!(text))),
        ("a spawn's model", spawn("model", json!(text))),
        ("a spawn's dialog pattern", spawn("dialog_patterns", json!([text]))),
        ("a spawn's limit pattern", spawn("limit_patterns", json!([text]))),
        ("a spawn's name", spawn("name", json!(text))),
        (
            "a team's description",
            json!({"create_team": {"team": "t", "cwd": "/", "unique": false, "description": text}}),
        ),
        (
            "the reason of a shutdown",
            json!({"shutdown": {"targets": targets, "reason": text, "grace_ms": 1, "force": false}}),
        ),
        (
            "a branch",
            json!({"create_worktree": {"team": "survey", "name": "x", "unique": false, "cwd": "/",
                "env": {}, "branch": text}}),
        ),
    ]
}
