//! Checks session teams, which belong to Claude Code's own sessions: teamd shows them and appends
//! messages to their inboxes, but changes nothing else of them.

#![allow(clippy::disallowed_methods, reason = "the tests act as Claude Code")]

use harness::TestEnv;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TEAM: &str = "session-0a1b2c3d";

/// Creates the files that a newer version of Claude Code writes for a session team, under the name
/// [`TEAM`]. Returns the team's directory.
fn create_session_team(env: &TestEnv) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/tests/data/later-era");
    let team_dir = env.root().join("teams").join(TEAM);
    std::fs::create_dir_all(team_dir.join("inboxes")).unwrap();
    let tasks_dir = env.root().join("tasks").join(TEAM);
    std::fs::create_dir_all(&tasks_dir).unwrap();
    for name in [".highwatermark", "8.json"] {
        std::fs::copy(data.join("tasks").join(name), tasks_dir.join(name)).unwrap();
    }
    std::fs::write(tasks_dir.join(".lock"), "").unwrap();
    std::fs::copy(data.join("inbox-w1.json"), team_dir.join("inboxes/w1.json")).unwrap();
    std::fs::copy(data.join("config.json"), team_dir.join("config.json")).unwrap();
    team_dir
}

fn event_log_text(env: &TestEnv) -> String {
    env.teamctl(["events", "--json"]).stdout
}

/// All files below a directory, with their content.
fn files_below(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => files.push((entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    files.sort();
    files
}

#[test]
fn session_team_is_listed_and_logged() {
    let env = TestEnv::with_team();
    let team_dir = create_session_team(&env);
    let status = env.json(["status", "--all"]);
    let teams: Vec<&str> =
        status["teams"].as_array().unwrap().iter().map(|team| team["name"].as_str().unwrap()).collect();
    assert_eq!(teams, [TEAM, "survey"]);
    assert!(!env.teamctl(["status"]).stdout.contains(TEAM));
    let inbox = env.json(["inbox", "w1", "-t", TEAM]);
    assert!(!inbox["messages"].as_array().unwrap().is_empty(), "{inbox}");
    env.teamctl(["task", "list", "-t", TEAM]).expect_success();
    let find_event = |part: &str| {
        event_log_text(&env).lines().any(|line| line.contains(TEAM) && line.contains(part)).then_some(())
    };
    env.wait_until("the message is in the event log", || find_event("message_stored"));
    env.wait_until("the task is in the event log", || find_event("task_created"));
    let message = r#"[{"from":"team-lead","text":"x","timestamp":"2026-11-20T23:27:47.849Z","read":false}]"#;
    std::fs::write(team_dir.join("inboxes/late.json"), message).unwrap();
    env.wait_until("the new message is in the event log", || find_event("\"member\":\"late\""));
    std::fs::remove_dir_all(&team_dir).unwrap();
    env.wait_until("the removed team is not listed", || {
        (!env.teamctl(["status", "--all"]).stdout.contains(TEAM)).then_some(())
    });
    std::fs::remove_dir_all(env.root().join("tasks").join(TEAM)).unwrap();
    env.shut_down();
}

#[test]
fn session_team_files_only_get_appended_messages() {
    let env = TestEnv::with_team();
    let team_dir = create_session_team(&env);
    env.wait_until("the event log has the team", || event_log_text(&env).contains(TEAM).then_some(()));
    let tasks = env.root().join("tasks").join(TEAM);
    let before = (files_below(&team_dir), files_below(&tasks));
    let commands: [&[&str]; 19] = [
        &["create", TEAM],
        &["spawn", "eve", "--profile", "worker"],
        &["delete", TEAM],
        &["delete", TEAM, "--force"],
        &["shutdown", "w1"],
        &["shutdown", "--all"],
        &["kill", "w1"],
        &["interrupt", "w1"],
        &["hide", "w1"],
        &["show", "w1"],
        &["layout", "tiled"],
        &["inbox", "w1", "--mark-read"],
        &["inbox", "--mark-read"],
        &["task", "create", "x"],
        &["task", "update", "8", "--subject", "x"],
        &["task", "claim", "8"],
        &["task", "done", "8"],
        &["task", "release", "8"],
        &["task", "delete", "8"],
    ];
    for args in commands {
        let output = env.teamctl_with(args, &[("TEAMD_TEAM", TEAM)]);
        assert!([76, 77].contains(&output.code), "{output:?}");
        assert!(output.stderr.contains("session"), "{output:?}");
    }
    let output = env.teamctl(["doctor", "--fix"]);
    assert!(output.stdout.contains("left alone"), "{output:?}");
    assert_eq!(before, (files_below(&team_dir), files_below(&tasks)));
    env.teamctl(["send", "w1", "from outside", "-t", TEAM]).expect_success();
    let inbox = env.inbox(TEAM, "w1");
    assert_eq!(inbox.last().unwrap()["text"], "from outside");
    let other_files = |files: Vec<(PathBuf, Vec<u8>)>| {
        files.into_iter().filter(|(path, _)| !path.ends_with("w1.json")).collect::<Vec<_>>()
    };
    assert_eq!((other_files(before.0), before.1), (other_files(files_below(&team_dir)), files_below(&tasks)));
    env.teamctl(["broadcast", "to all", "-t", TEAM]).expect_success();
    assert_eq!(env.inbox(TEAM, "w1").last().unwrap()["text"], "to all");
    env.shut_down();
}

#[test]
fn torn_session_config_is_not_an_error() {
    let env = TestEnv::with_team();
    let team_dir = create_session_team(&env);
    let config = std::fs::read(team_dir.join("config.json")).unwrap();
    for content in [&b""[..], &config[..config.len() / 2]] {
        std::fs::write(team_dir.join("config.json"), content).unwrap();
        env.teamctl(["status", "--all"]).expect_success();
        let doctor = env.teamctl(["doctor"]);
        assert!(!doctor.stdout.contains("config.json"), "{doctor:?}");
        env.teamctl(["inbox", "w1", "-t", TEAM]).expect_success();
        env.teamctl(["send", "w1", "in between", "-t", TEAM]).expect_success();
        assert_eq!(std::fs::read(team_dir.join("config.json")).unwrap(), content);
    }
    std::fs::write(team_dir.join("config.json"), config).unwrap();
    assert!(env.json(["status", "w1", "--all"])["teams"][0]["members"][0]["name"] == "w1");
    let doctor = env.teamctl(["doctor"]);
    assert!(doctor.stdout.contains("no damaged file was set aside"), "{doctor:?}");
    assert!(!event_log_text(&env).contains("\"event\":\"error\""), "{}", event_log_text(&env));
    env.shut_down();
}

/// Rewrites the config in place without a lock, and appends a message to the inbox of w1 under the
/// inbox lock, until `stop` is set. Returns the number of messages.
fn rewrite_files(team_dir: &Path, stop: &AtomicBool) -> usize {
    let config = std::fs::read(team_dir.join("config.json")).unwrap();
    let (inbox, lock) = (team_dir.join("inboxes/w1.json"), team_dir.join("inboxes/w1.json.lock"));
    let mut message_count = 0;
    while !stop.load(Ordering::Relaxed) {
        std::fs::write(team_dir.join("config.json"), b"").unwrap();
        std::fs::write(team_dir.join("config.json"), &config).unwrap();
        if std::fs::create_dir(&lock).is_err() {
            continue;
        }
        let mut messages: Vec<serde_json::Value> =
            serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
        messages.push(serde_json::json!({"from": "w2", "text": format!("theirs {message_count}"), "timestamp": "2026-11-20T23:27:47.849Z", "read": false}));
        let temporary_file = team_dir.join("inboxes/w1.json.tmp.0a1b2c3d");
        std::fs::write(&temporary_file, serde_json::to_string_pretty(&messages).unwrap()).unwrap();
        std::fs::rename(&temporary_file, &inbox).unwrap();
        std::fs::remove_dir(&lock).unwrap();
        message_count += 1;
        // A real session pauses between two writes. Without a pause, teamctl would hardly get the
        // lock.
        harness::sleep(Duration::from_millis(2));
    }
    message_count
}

#[test]
fn no_message_is_lost_beside_a_rewriting_session() {
    let env = TestEnv::with_team();
    let team_dir = create_session_team(&env);
    let config = std::fs::read(team_dir.join("config.json")).unwrap();
    let stop = AtomicBool::new(false);
    let foreign_count = std::thread::scope(|scope| {
        let writer = scope.spawn(|| rewrite_files(&team_dir, &stop));
        for n in 0..50 {
            env.teamctl(["send", "w1", &format!("ours {n}"), "-t", TEAM]).expect_success();
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let texts: Vec<String> =
        env.inbox(TEAM, "w1").iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect();
    let texts_of =
        |prefix: &str| texts.iter().filter(|text| text.starts_with(prefix)).cloned().collect::<Vec<_>>();
    assert_eq!(texts_of("ours"), (0..50).map(|n| format!("ours {n}")).collect::<Vec<_>>());
    assert_eq!(texts_of("theirs"), (0..foreign_count).map(|n| format!("theirs {n}")).collect::<Vec<_>>());
    assert_eq!(std::fs::read(team_dir.join("config.json")).unwrap(), config);
    env.shut_down();
}

/// Writes a plan request and a permission request of w1 into the lead's inbox. Returns their ids.
fn write_requests(team_dir: &Path) -> [String; 2] {
    let ids = [format!("plan_approval-1795217267849@w1@{TEAM}"), "perm-1795217267850-abcdefg".to_owned()];
    let timestamp = "2026-11-20T23:27:47.849Z";
    let plan = serde_json::json!({"type": "plan_approval_request", "from": "w1", "timestamp": timestamp,
        "planFilePath": "/p/plan.md", "planContent": "count, then sort", "requestId": ids[0]});
    let permission = serde_json::json!({"type": "permission_request", "request_id": ids[1], "agent_id": "w1",
        "tool_name": "Bash", "tool_use_id": "t", "description": "count", "input": {"command": "wc -l"},
        "permission_suggestions": []});
    let entry = |payload: serde_json::Value| serde_json::json!({"from": "w1", "text": payload.to_string(), "timestamp": timestamp, "msgV": 1, "read": false});
    let inbox = serde_json::json!([entry(plan), entry(permission)]);
    std::fs::write(team_dir.join("inboxes/team-lead.json"), serde_json::to_string_pretty(&inbox).unwrap())
        .unwrap();
    ids
}

/// Answers a request while a session holds the lock of the member's inbox. The session has read the
/// inbox already and rewrites it after teamctl has prepared its temporary file. Returns the answer,
/// which must be stored after the session's message.
fn answer_while_locked(env: &TestEnv, team_dir: &Path, args: [&str; 6]) -> serde_json::Value {
    let (inbox, lock) = (team_dir.join("inboxes/w1.json"), team_dir.join("inboxes/w1.json.lock"));
    std::fs::create_dir(&lock).unwrap();
    let mut foreign_messages: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    foreign_messages.push(serde_json::json!({"from": "w2", "text": "between", "timestamp": "2026-11-20T23:27:48.849Z", "read": true}));
    let teamctl = env.start_teamctl(args);
    env.wait_until("teamctl has written its temporary file", || {
        let names =
            std::fs::read_dir(team_dir.join("inboxes")).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().contains(".tmp.")).then_some(())
    });
    std::fs::write(&inbox, serde_json::to_string_pretty(&foreign_messages).unwrap()).unwrap();
    std::fs::remove_dir(&lock).unwrap();
    let output = teamctl.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let messages = env.inbox(TEAM, "w1");
    let (answer, other_messages) = messages.split_last().unwrap();
    assert_eq!((other_messages, &answer["from"]), (foreign_messages.as_slice(), &"team-lead".into()));
    serde_json::from_str(answer["text"].as_str().unwrap()).unwrap()
}

#[test]
fn session_member_requests_are_answered_beside_a_lock_holder() {
    let env = TestEnv::with_team();
    let team_dir = create_session_team(&env);
    let [plan, permission] = write_requests(&team_dir);
    let requests = env.json(["requests", "-t", TEAM]);
    let ids: Vec<_> =
        requests["requests"].as_array().unwrap().iter().map(|open| open["id"].clone()).collect();
    assert_eq!(ids, [plan.as_str(), permission.as_str()]);
    assert_eq!(requests["requests"][0]["body"]["planContent"], "count, then sort");
    assert_eq!(
        env.json(["requests"])["requests"],
        serde_json::json!([]),
        "requests of a session team are only shown with -t"
    );
    let tasks = env.root().join("tasks").join(TEAM);
    let other_files = || {
        let files = files_below(&team_dir).into_iter().chain(files_below(&tasks));
        files.filter(|(path, _)| !path.ends_with("w1.json")).collect::<Vec<_>>()
    };
    let files_before = other_files();
    let approval =
        answer_while_locked(&env, &team_dir, ["approve", "plan_appr", "--mode", "acceptEdits", "-t", TEAM]);
    assert_eq!(
        (&approval["type"], &approval["requestId"], &approval["approved"], &approval["permissionMode"]),
        (&"plan_approval_response".into(), &plan.into(), &true.into(), &"acceptEdits".into())
    );
    let denial =
        answer_while_locked(&env, &team_dir, ["deny", &permission, "--reason", "not today", "-t", TEAM]);
    assert_eq!(
        (&denial["type"], &denial["request_id"], &denial["subtype"], &denial["error"]),
        (&"permission_response".into(), &permission.clone().into(), &"error".into(), &"not today".into())
    );
    assert_eq!(env.json(["requests", "-t", TEAM])["requests"], serde_json::json!([]));
    assert_eq!(
        env.teamctl(["approve", &permission, "-t", TEAM]).code,
        73,
        "the request was answered already"
    );
    let as_w1 = [("TEAMD_MEMBER", "w1"), ("TEAMD_TEAM", TEAM)];
    assert_eq!(env.teamctl_with(&["approve", &permission], &as_w1).code, 77);
    assert_eq!(files_before, other_files(), "no other file of the session team is changed");
    env.shut_down();
}
