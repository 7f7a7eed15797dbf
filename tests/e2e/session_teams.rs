//! The teams of Claude Code's own sessions: looked at, written to by append alone, and left as they are.

#![allow(clippy::disallowed_methods, reason = "the tests are the other program on these files")]

use harness::TestEnv;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TEAM: &str = "session-0a1b2c3d";

/// What one of the newer versions leaves, under this team's name.
fn create_session_team(env: &TestEnv) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/tests/data/later-era");
    let home = env.root().join("teams").join(TEAM);
    std::fs::create_dir_all(home.join("inboxes")).unwrap();
    let tasks = env.root().join("tasks").join(TEAM);
    std::fs::create_dir_all(&tasks).unwrap();
    for name in [".highwatermark", "8.json"] {
        std::fs::copy(data.join("tasks").join(name), tasks.join(name)).unwrap();
    }
    std::fs::write(tasks.join(".lock"), "").unwrap();
    std::fs::copy(data.join("inbox-w1.json"), home.join("inboxes/w1.json")).unwrap();
    std::fs::copy(data.join("config.json"), home.join("config.json")).unwrap();
    home
}

fn event_log_text(env: &TestEnv) -> String {
    env.teamctl(["events", "--json"]).stdout
}

/// Every file below, with its text.
fn files_below(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push((entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn session_team_is_listed_and_logged() {
    let env = TestEnv::with_team();
    let home = create_session_team(&env);
    let status = env.json(["status", "--all"]);
    let teams: Vec<&str> =
        status["teams"].as_array().unwrap().iter().map(|team| team["name"].as_str().unwrap()).collect();
    assert_eq!(teams, [TEAM, "survey"]);
    assert!(!env.teamctl(["status"]).stdout.contains(TEAM));
    let inbox = env.json(["inbox", "w1", "-t", TEAM]);
    assert!(!inbox["messages"].as_array().unwrap().is_empty(), "{inbox}");
    env.teamctl(["task", "list", "-t", TEAM]).expect_success();
    let told = |word: &str| {
        event_log_text(&env).lines().any(|line| line.contains(TEAM) && line.contains(word)).then_some(())
    };
    env.wait_until("its mail is told", || told("message_stored"));
    env.wait_until("its task is told", || told("task_created"));
    let message = r#"[{"from":"team-lead","text":"x","timestamp":"2026-11-20T23:27:47.849Z","read":false}]"#;
    std::fs::write(home.join("inboxes/late.json"), message).unwrap();
    env.wait_until("new mail is told", || told("\"member\":\"late\""));
    std::fs::remove_dir_all(&home).unwrap();
    env.wait_until("it is gone", || (!env.teamctl(["status", "--all"]).stdout.contains(TEAM)).then_some(()));
    std::fs::remove_dir_all(env.root().join("tasks").join(TEAM)).unwrap();
    env.shut_down();
}

#[test]
fn session_team_files_only_get_appended_messages() {
    let env = TestEnv::with_team();
    let home = create_session_team(&env);
    env.wait_until("the daemon knows it", || event_log_text(&env).contains(TEAM).then_some(()));
    let tasks = env.root().join("tasks").join(TEAM);
    let before = (files_below(&home), files_below(&tasks));
    let refused: [&[&str]; 19] = [
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
    for arguments in refused {
        let ran = env.teamctl_with(arguments, &[("TEAMD_TEAM", TEAM)]);
        assert!([76, 77].contains(&ran.code), "{ran:?}");
        assert!(ran.stderr.contains("session"), "{ran:?}");
    }
    let fixed = env.teamctl(["doctor", "--fix"]);
    assert!(fixed.stdout.contains("left alone"), "{fixed:?}");
    assert_eq!(before, (files_below(&home), files_below(&tasks)));
    env.teamctl(["send", "w1", "from outside", "-t", TEAM]).expect_success();
    let inbox = env.inbox(TEAM, "w1");
    assert_eq!(inbox.last().unwrap()["text"], "from outside");
    let rest = |tree: Vec<(PathBuf, Vec<u8>)>| {
        tree.into_iter().filter(|(path, _)| !path.ends_with("w1.json")).collect::<Vec<_>>()
    };
    assert_eq!((rest(before.0), before.1), (rest(files_below(&home)), files_below(&tasks)));
    env.teamctl(["broadcast", "to all", "-t", TEAM]).expect_success();
    assert_eq!(env.inbox(TEAM, "w1").last().unwrap()["text"], "to all");
    env.shut_down();
}

#[test]
fn torn_session_config_is_not_an_error() {
    let env = TestEnv::with_team();
    let home = create_session_team(&env);
    let config = std::fs::read(home.join("config.json")).unwrap();
    for torn in [&b""[..], &config[..config.len() / 2]] {
        std::fs::write(home.join("config.json"), torn).unwrap();
        env.teamctl(["status", "--all"]).expect_success();
        let doctor = env.teamctl(["doctor"]);
        assert!(!doctor.stdout.contains("config.json"), "{doctor:?}");
        env.teamctl(["inbox", "w1", "-t", TEAM]).expect_success();
        env.teamctl(["send", "w1", "in between", "-t", TEAM]).expect_success();
        assert_eq!(std::fs::read(home.join("config.json")).unwrap(), torn);
    }
    std::fs::write(home.join("config.json"), config).unwrap();
    assert!(env.json(["status", "w1", "--all"])["teams"][0]["members"][0]["name"] == "w1");
    let doctor = env.teamctl(["doctor"]);
    assert!(doctor.stdout.contains("no damaged file was set aside"), "{doctor:?}");
    assert!(!event_log_text(&env).contains("\"event\":\"error\""), "{}", event_log_text(&env));
    env.shut_down();
}

/// Truncates and rewrites its config again and again, and its member's inbox under the lock that all take.
fn rewrite_files(home: &Path, stop: &AtomicBool) -> usize {
    let config = std::fs::read(home.join("config.json")).unwrap();
    let (inbox, lock) = (home.join("inboxes/w1.json"), home.join("inboxes/w1.json.lock"));
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        std::fs::write(home.join("config.json"), b"").unwrap();
        std::fs::write(home.join("config.json"), &config).unwrap();
        if std::fs::create_dir(&lock).is_err() {
            continue;
        }
        let mut all: Vec<serde_json::Value> =
            serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
        all.push(serde_json::json!({"from": "w2", "text": format!("theirs {written}"), "timestamp": "2026-11-20T23:27:47.849Z", "read": false}));
        let temporary = home.join("inboxes/w1.json.tmp.0a1b2c3d");
        std::fs::write(&temporary, serde_json::to_string_pretty(&all).unwrap()).unwrap();
        std::fs::rename(&temporary, &inbox).unwrap();
        std::fs::remove_dir(&lock).unwrap();
        written += 1;
        // Elsewhere nobody rewrites without a pause, and a lock that is never free is nobody's.
        harness::sleep(Duration::from_millis(2));
    }
    written
}

#[test]
fn no_message_is_lost_beside_a_rewriting_session() {
    let env = TestEnv::with_team();
    let home = create_session_team(&env);
    let config = std::fs::read(home.join("config.json")).unwrap();
    let stop = AtomicBool::new(false);
    let theirs = std::thread::scope(|scope| {
        let writer = scope.spawn(|| rewrite_files(&home, &stop));
        for n in 0..50 {
            env.teamctl(["send", "w1", &format!("ours {n}"), "-t", TEAM]).expect_success();
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let texts: Vec<String> =
        env.inbox(TEAM, "w1").iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect();
    let of = |who: &str| texts.iter().filter(|text| text.starts_with(who)).cloned().collect::<Vec<_>>();
    assert_eq!(of("ours"), (0..50).map(|n| format!("ours {n}")).collect::<Vec<_>>());
    assert_eq!(of("theirs"), (0..theirs).map(|n| format!("theirs {n}")).collect::<Vec<_>>());
    assert_eq!(std::fs::read(home.join("config.json")).unwrap(), config);
    env.shut_down();
}

/// What w1 has asked its lead, in this session's own id.
fn write_requests(home: &Path) -> [String; 2] {
    let ids = [format!("plan_approval-1795217267849@w1@{TEAM}"), "perm-1795217267850-abcdefg".to_owned()];
    let at = "2026-11-20T23:27:47.849Z";
    let plan = serde_json::json!({"type": "plan_approval_request", "from": "w1", "timestamp": at,
        "planFilePath": "/p/plan.md", "planContent": "count, then sort", "requestId": ids[0]});
    let permission = serde_json::json!({"type": "permission_request", "request_id": ids[1], "agent_id": "w1",
        "tool_name": "Bash", "tool_use_id": "t", "description": "count", "input": {"command": "wc -l"},
        "permission_suggestions": []});
    let entry = |payload: serde_json::Value| serde_json::json!({"from": "w1", "text": payload.to_string(), "timestamp": at, "msgV": 1, "read": false});
    let inbox = serde_json::json!([entry(plan), entry(permission)]);
    std::fs::write(home.join("inboxes/team-lead.json"), serde_json::to_string_pretty(&inbox).unwrap())
        .unwrap();
    ids
}

/// Answers while a session holds the member's lock: it has read the inbox already, and writes what it makes of it when
/// our answer is about to be put in place. Gives the answer that came behind.
fn answer_while_locked(env: &TestEnv, home: &Path, arguments: [&str; 6]) -> serde_json::Value {
    let (inbox, lock) = (home.join("inboxes/w1.json"), home.join("inboxes/w1.json.lock"));
    std::fs::create_dir(&lock).unwrap();
    let mut theirs: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    theirs.push(serde_json::json!({"from": "w2", "text": "between", "timestamp": "2026-11-20T23:27:48.849Z", "read": true}));
    let answering = env.start_teamctl(arguments);
    env.wait_until("the answer is written beside", || {
        let names = std::fs::read_dir(home.join("inboxes")).unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().contains(".tmp.")).then_some(())
    });
    std::fs::write(&inbox, serde_json::to_string_pretty(&theirs).unwrap()).unwrap();
    std::fs::remove_dir(&lock).unwrap();
    let answered = answering.wait_with_output().unwrap();
    assert!(answered.status.success(), "{answered:?}");
    let after = env.inbox(TEAM, "w1");
    let (answer, before) = after.split_last().unwrap();
    assert_eq!((before, &answer["from"]), (theirs.as_slice(), &"team-lead".into()));
    serde_json::from_str(answer["text"].as_str().unwrap()).unwrap()
}

#[test]
fn session_member_requests_are_answered_beside_a_lock_holder() {
    let env = TestEnv::with_team();
    let home = create_session_team(&env);
    let [plan, permission] = write_requests(&home);
    let shown = env.json(["requests", "-t", TEAM]);
    let ids: Vec<_> = shown["requests"].as_array().unwrap().iter().map(|open| open["id"].clone()).collect();
    assert_eq!(ids, [plan.as_str(), permission.as_str()]);
    assert_eq!(shown["requests"][0]["body"]["planContent"], "count, then sort");
    assert_eq!(env.json(["requests"])["requests"], serde_json::json!([]), "it is another team's");
    let tasks = env.root().join("tasks").join(TEAM);
    let rest = || {
        let all = files_below(&home).into_iter().chain(files_below(&tasks));
        all.filter(|(path, _)| !path.ends_with("w1.json")).collect::<Vec<_>>()
    };
    let before = rest();
    let yes = answer_while_locked(&env, &home, ["approve", "plan_appr", "--mode", "acceptEdits", "-t", TEAM]);
    assert_eq!(
        (&yes["type"], &yes["requestId"], &yes["approved"], &yes["permissionMode"]),
        (&"plan_approval_response".into(), &plan.into(), &true.into(), &"acceptEdits".into())
    );
    let no = answer_while_locked(&env, &home, ["deny", &permission, "--reason", "not today", "-t", TEAM]);
    assert_eq!(
        (&no["type"], &no["request_id"], &no["subtype"], &no["error"]),
        (&"permission_response".into(), &permission.clone().into(), &"error".into(), &"not today".into())
    );
    assert_eq!(env.json(["requests", "-t", TEAM])["requests"], serde_json::json!([]));
    assert_eq!(env.teamctl(["approve", &permission, "-t", TEAM]).code, 73, "it was answered");
    let as_w1 = [("TEAMD_MEMBER", "w1"), ("TEAMD_TEAM", TEAM)];
    assert_eq!(env.teamctl_with(&["approve", &permission], &as_w1).code, 77);
    assert_eq!(before, rest(), "nothing else of theirs is written, and their lead's inbox is left unread");
    env.shut_down();
}
