//! Checks the record of a team: every kind of line is there in order, also across daemons. Secrets
//! are masked, and a record that cannot be written stops no work.

use harness::{SmallDisk, TestEnv, record_skip};
use protocol::control_socket::{Activity, FromShim, Request};
use protocol::event_log_line::EventKind;
use protocol::team_record_line::{RECORD_VERSION, RecordEntry, RecordLine};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUEST: &str = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"make"},"permission_suggestions":[]}"#;

/// An environment with the recorded team `survey`, and the path of its record.
fn env_with_record() -> (TestEnv, PathBuf) {
    let env = TestEnv::with_daemon();
    let record = create_recorded(&env);
    (env, record)
}

fn create_recorded(env: &TestEnv) -> PathBuf {
    let reply = env.json(["create", "survey", "--record"]);
    PathBuf::from(reply["record"].as_str().expect("the reply has the record's path"))
}

/// The lines of a record, without a line that the daemon is writing: if it crosses a page of memory,
/// the kernel may show only its first part.
fn whole_lines(record: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(record).expect("the record can be read");
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end].lines().map(str::to_owned).collect()
}

/// All lines of a record, each of which must be valid.
fn lines(record: &Path) -> Vec<RecordLine> {
    whole_lines(record).iter().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn wait_for_line(env: &TestEnv, record: &Path, description: &str, is_wanted: impl Fn(&RecordEntry) -> bool) {
    env.wait_until(description, || lines(record).iter().any(|line| is_wanted(&line.entry)).then_some(()));
}

/// The position of the first line that matches, from `begin`.
fn find(
    lines: &[RecordLine],
    begin: usize,
    description: &str,
    is_wanted: impl Fn(&RecordEntry) -> bool,
) -> usize {
    let found = lines[begin..].iter().position(|line| is_wanted(&line.entry));
    begin + found.unwrap_or_else(|| panic!("{description} after line {begin} of {lines:#?}"))
}

fn kinds(record: &Path) -> Vec<String> {
    let kind =
        |line: &String| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
    whole_lines(record).iter().map(kind).collect()
}

fn is_event(entry: &RecordEntry, is_wanted: impl Fn(&EventKind) -> bool) -> bool {
    matches!(entry, RecordEntry::Event { event } if is_wanted(&event.kind))
}

fn is_output(entry: &RecordEntry, name: &str, part: &str) -> bool {
    matches!(entry, RecordEntry::Output { member, text, .. } if member.as_str() == name && text.contains(part))
}

fn is_message(entry: &RecordEntry, owner: &str, part: &str) -> bool {
    let RecordEntry::Message { inbox, message, .. } = entry else { return false };
    inbox.as_str() == owner && message.text.contains(part)
}

fn is_task(entry: &RecordEntry, subject: &str, status: &str) -> bool {
    let RecordEntry::Task { task } = entry else { return false };
    task.subject == subject && json!(task.status) == status
}

fn create_task(env: &TestEnv, subject: &str, command: &str) {
    env.teamctl(["task", "create", subject, "--command", command, "--owner", "ann"]).expect_success();
}

#[test]
fn all_kinds_of_lines_are_recorded_in_order() {
    let (env, record) = env_with_record();
    // The daemon may see a task for the first time when a member is already at work on it. So no
    // member runs yet.
    env.teamctl(["task", "create", "count", "--command", "echo 'four lines'"]).expect_success();
    wait_for_line(&env, &record, "the new task is recorded", |entry| is_task(entry, "count", "pending"));
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    create_task(&env, "fail", "echo 'no such file'; exit 3");
    wait_for_line(&env, &record, "the turn has failed", |entry| {
        is_event(entry, |kind| matches!(kind, EventKind::TaskFailed { .. }))
    });
    env.teamctl(["send", "bob", "are you there?"]).expect_success();
    // The daemon sees changes of two inboxes in any order.
    wait_for_line(&env, &record, "the message is recorded", |entry| {
        is_message(entry, "bob", "are you there?")
    });
    env.teamctl(["spawn", "cat", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let request = REQUEST.replace("\"ann\"", "\"cat\"");
    let asked =
        env.command(harness::programs().join("scripted-agent")).args(["ask", "cat", &request]).status();
    assert!(asked.unwrap().success());
    wait_for_line(&env, &record, "the request is open", |entry| {
        is_event(entry, |kind| matches!(kind, EventKind::RequestOpened { .. }))
    });
    env.teamctl(["approve", "perm-1"]).expect_success();
    wait_for_line(&env, &record, "the answer is recorded", |entry| is_message(entry, "cat", "perm-1"));
    env.teamctl(["task", "delete", "1"]).expect_success();
    wait_for_line(&env, &record, "the removal is recorded", |entry| {
        matches!(entry, RecordEntry::TaskRemoved { .. })
    });
    env.teamctl(["kill", "bob"]).expect_success();
    wait_for_line(&env, &record, "the failure's output is recorded", |entry| {
        is_output(entry, "ann", "no such file")
    });
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    wait_for_line(&env, &record, "the end is recorded", |entry| {
        is_event(entry, |kind| *kind == EventKind::TeamDeleted)
    });

    let lines = lines(&record);
    assert!(
        matches!(&lines[0].entry, RecordEntry::Start { version: RECORD_VERSION, team } if team.as_str() == "survey")
    );
    assert!(lines.is_sorted_by_key(|line| &line.time));
    let is_call = |entry: &RecordEntry, is_wanted: fn(&Request) -> bool| matches!(entry, RecordEntry::Call { caller: None, request } if is_wanted(request));
    let is_turn = |entry: &RecordEntry, activity: Activity| {
        matches!(entry, RecordEntry::Report { member, report: FromShim::TurnStatus(turn) }
            if member.as_str() == "ann" && turn.activity == activity && turn.turn_number > 0)
    };
    type Step<'a> = (&'static str, Box<dyn Fn(&RecordEntry) -> bool + 'a>);
    let steps: Vec<Step> = vec![
        ("create", Box::new(|entry| is_call(entry, |request| matches!(request, Request::CreateTeam(_))))),
        ("created", Box::new(|entry| is_event(entry, |kind| *kind == EventKind::TeamCreated))),
        ("new task", Box::new(|entry| is_task(entry, "count", "pending"))),
        ("spawn", Box::new(|entry| is_call(entry, |request| matches!(request, Request::Spawn(_))))),
        (
            "started",
            Box::new(|entry| matches!(entry, RecordEntry::Report { report: FromShim::Started { .. }, .. })),
        ),
        ("completed", Box::new(|entry| is_task(entry, "count", "completed"))),
        ("message", Box::new(|entry| is_message(entry, "bob", "are you there?"))),
        ("request", Box::new(|entry| is_message(entry, "team-lead", "permission_request"))),
        ("answer", Box::new(|entry| is_message(entry, "cat", "perm-1"))),
        ("removed", Box::new(|entry| matches!(entry, RecordEntry::TaskRemoved { id } if id.number() == 1))),
        ("kill", Box::new(|entry| is_call(entry, |request| matches!(request, Request::Kill(_))))),
        (
            "exit",
            Box::new(
                |entry| matches!(entry, RecordEntry::Report { member, report: FromShim::Exited(_) } if member.as_str() == "bob"),
            ),
        ),
        ("delete", Box::new(|entry| is_call(entry, |request| matches!(request, Request::DeleteTeam(_))))),
    ];
    let mut position = 0;
    for (description, is_wanted) in &steps {
        position = find(&lines, position, description, is_wanted);
    }
    let turn = find(&lines, 0, "turn", |entry| is_turn(entry, Activity::Active));
    find(&lines, turn, "idle", |entry| is_turn(entry, Activity::Idle));
    find(&lines, turn, "output", |entry| is_output(entry, "ann", "four lines"));
    let reads = |request: &Request| matches!(request, Request::Status | Request::LongPoll(_));
    assert!(!lines.iter().any(|line| is_call(&line.entry, reads)), "calls that only read are not recorded");
    let outputs = lines.iter().filter(|line| is_output(&line.entry, "ann", "four lines"));
    assert_eq!(outputs.count(), 1, "each output is recorded once");
    env.shut_down();
}

#[test]
fn record_is_private_and_its_path_is_shown() {
    let (env, record) = env_with_record();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&record), mode(record.parent().unwrap())), (0o600, 0o700));
    let name = record.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("survey-2") && name.ends_with("Z.jsonl"), "{name}");
    let team = || env.json(["status"])["teams"][0].clone();
    assert_eq!(team()["record"], json!(record));
    // A record that ends stays, and the record of a new team with the same name is another one.
    env.teamctl(["delete", "survey"]).expect_success();
    let output = env.teamctl(["create", "survey", "--record"]).expect_success();
    assert!(output.starts_with("created team survey; its record is /"), "{output}");
    assert_ne!(team()["record"], json!(record));
    assert!(kinds(&record).contains(&"start".to_owned()));
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["create", "survey"]).expect_success();
    assert_eq!(team()["record"], Value::Null, "only --record starts a record");
    let report = env.json(["doctor"]).to_string();
    assert!(!report.contains("records"), "{report}");
    env.shut_down();
}

#[test]
fn run_prints_the_path_of_its_record() {
    let env = TestEnv::new();
    let file = env.write_file(
        "survey.toml",
        "name = 'survey'\n[[member]]\nname = 'ann'\nprofile = 'worker'\n[[task]]\nkey = 'count'\nsubject = 'count'\ncommand = 'echo four'\n",
    );
    let result = env.json(["run", &file, "--record"]);
    let record = PathBuf::from(result["record"].as_str().unwrap());
    wait_for_line(&env, &record, "the end of the task is recorded", |entry| {
        is_task(entry, "count", "completed")
    });
    wait_for_line(&env, &record, "the output is recorded", |entry| is_output(entry, "ann", "four"));
    let output = env.teamctl(["run", &file, "--record", "--keep-team"]).expect_success();
    assert!(output.contains("The record is /"), "{output}");
    let output = env.teamctl(["run", &file]);
    assert_eq!(output.code, 73, "{output:#?}");
    env.shut_down();
}

#[test]
fn next_daemon_goes_on_without_repeating_lines() {
    let (env, record) = env_with_record();
    // The daemon may see a task for the first time when a member is already at work on it. So no
    // member runs yet.
    env.teamctl(["task", "create", "first", "--command", "echo 'output one'"]).expect_success();
    wait_for_line(&env, &record, "the new task is recorded", |entry| is_task(entry, "first", "pending"));
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    wait_for_line(&env, &record, "the output is recorded", |entry| is_output(entry, "ann", "output one"));
    env.wait_until("ann is idle", || env.member("ann").filter(|ann| ann["activity"] == "idle"));
    let before = kinds(&record);
    env.kill_process(env.daemon_pid());
    // This message is in the record although no daemon has run.
    env.teamctl(["send", "ann", "while none runs"]).expect_success();
    env.start_daemon();
    create_task(&env, "second", "echo 'output two'");
    wait_for_line(&env, &record, "the output is recorded", |entry| is_output(entry, "ann", "output two"));
    wait_for_line(&env, &record, "the message is recorded", |entry| {
        is_message(entry, "ann", "while none runs")
    });
    let lines = lines(&record);
    let count =
        |is_wanted: &dyn Fn(&RecordEntry) -> bool| lines.iter().filter(|line| is_wanted(&line.entry)).count();
    assert_eq!(count(&|entry| matches!(entry, RecordEntry::Start { .. })), 1);
    assert_eq!(count(&|entry| is_task(entry, "first", "pending")), 1);
    assert_eq!(count(&|entry| is_task(entry, "first", "completed")), 1);
    assert_eq!(count(&|entry| is_output(entry, "ann", "output one")), 1);
    assert_eq!(count(&|entry| is_message(entry, "ann", "while none runs")), 1);
    assert_eq!(count(&|entry| is_event(entry, |kind| matches!(kind, EventKind::MemberAdopted { .. }))), 1);
    assert_eq!(kinds(&record)[..before.len()], before, "nothing is rewritten");
    let has_idle_turn = |entry: &RecordEntry| {
        matches!(entry, RecordEntry::Report { report: FromShim::TurnStatus(turn), .. }
            if turn.activity == Activity::Idle && turn.turn_number == 1)
    };
    assert_eq!(count(&has_idle_turn), 1, "the turn of an adopted agent is not repeated");
    env.shut_down();
}

#[test]
fn secrets_are_masked_in_records_and_archives() {
    let (env, record) = env_with_record();
    let secrets = [
        "sk-proj-a1b2c3d4e5f6g7h8i9",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "AKIAIOSFODNN7EXAMPLE",
        "hunter2hunter2",
        "swordfish",
    ];
    let [key, token, id, password, variable] = secrets;
    env.teamctl_with(&["spawn", "ann", "--profile", "worker"], &[("DB_PASSWORD", variable)]).expect_success();
    env.teamctl(["send", "ann", &format!("use {key}, not /usr/share/sk-skeleton")]).expect_success();
    let description = format!("clone https://ann:{password}@host/x");
    let args = ["task", "create", "clone", "--owner", "ann", "--description", &description];
    let command = ["--command", &format!("echo {id} and $DB_PASSWORD; echo 'fatal: {token}' >&2; exit 1")];
    env.teamctl_with(&[&args[..], &command].concat(), &[]).expect_success();
    wait_for_line(&env, &record, "the output is recorded", |entry| {
        is_output(entry, "ann", "fatal: (hidden)")
    });
    wait_for_line(&env, &record, "the message is recorded", |entry| {
        is_message(entry, "ann", "use (hidden), not /usr/share/sk-skeleton")
    });
    let text = std::fs::read_to_string(&record).unwrap();
    for secret in [key, token, id, password] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains(r#""DB_PASSWORD":"(hidden)""#) && text.contains("https://ann:(hidden)@host/x"));
    let archive = env.path("out/survey.tar").display().to_string();
    env.teamctl(["export", "survey", "--mask", "-o", &archive]).expect_success();
    let bytes = std::fs::read(&archive).unwrap();
    let packed = String::from_utf8_lossy(&bytes);
    for secret in [key, token, id, password] {
        assert!(!packed.contains(secret), "{secret}");
    }
    assert!(packed.contains("use (hidden), not"));
    env.teamctl(["import", &archive, "-t", "copy", "--yes"]).expect_success();
    env.shut_down();
}

/// How many events say that the record cannot be written.
fn error_count(env: &TestEnv) -> usize {
    let events = env.events().into_iter().filter(|event| event["event"] == "error");
    events
        .filter(|event| event.to_string().contains("its record gets at most 4 MiB of these lines later"))
        .count()
}

fn check_that_lines_wait(env: &TestEnv, record: &Path, make_writable: impl FnOnce()) {
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    create_task(env, "count", "echo four");
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.wait_until("the error is logged", || (error_count(env) > 0).then_some(()));
    make_writable();
    env.teamctl(["send", "ann", "later"]).expect_success();
    wait_for_line(env, record, "the next line is recorded", |entry| is_message(entry, "ann", "later"));
    // The daemon may notice the message before the change of the task.
    wait_for_line(env, record, "the task is recorded", |entry| is_task(entry, "count", "completed"));
    let lines = lines(record);
    let spawned = find(&lines, 0, "spawn", |entry| {
        is_event(entry, |kind| matches!(kind, EventKind::MemberSpawned { .. }))
    });
    find(&lines, spawned, "completed", |entry| is_task(entry, "count", "completed"));
    assert_eq!(error_count(env), 1, "the error is logged once");
}

#[test]
fn lines_wait_while_the_directory_cannot_be_written() {
    let (env, record) = env_with_record();
    wait_for_line(&env, &record, "all lines are written", |entry| {
        is_event(entry, |kind| *kind == EventKind::TeamCreated)
    });
    let directory = record.parent().unwrap();
    let aside = directory.with_extension("aside");
    let rename = |from: &Path, to: &Path| {
        assert!(Command::new("mv").args([from, to]).status().unwrap().success());
    };
    rename(directory, &aside);
    std::fs::File::create(directory).unwrap();
    check_that_lines_wait(&env, &record, || {
        std::fs::remove_file(directory).unwrap();
        rename(&aside, directory);
    });
    env.shut_down();
}

#[test]
fn lines_wait_while_the_disk_is_full() {
    let Some(disk) = SmallDisk::mount(1) else {
        return record_skip("full-disk-record", "no right to mount a small file system");
    };
    let env = TestEnv::with_daemon();
    let state = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().path();
    let directory = state.join("records");
    std::fs::create_dir(&directory).unwrap();
    assert!(Command::new("mount").arg("--bind").args([disk.path(), &directory]).status().unwrap().success());
    let record = create_recorded(&env);
    disk.fill();
    check_that_lines_wait(&env, &record, || disk.free());
    assert!(Command::new("umount").arg("-l").arg(&directory).status().unwrap().success());
    env.shut_down();
}
