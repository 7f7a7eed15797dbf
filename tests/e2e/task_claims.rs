//! Checks claims in a long task list: the daemon suggests the next task (a hint), and the claim
//! checks it against the files. The files may have changed since the hint.

use crate::why::PausedProcess;
use harness::{McpClient, TestEnv, record_skip};
use notify::event::{AccessKind, EventKind};
use notify::{RecursiveMode, Watcher};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Large enough that a claim requests a hint from the daemon before it reads task files.
const TASK_COUNT: u32 = 600;

/// Writes a task as another program does: in place and without a lock. `more` are further JSON
/// fields.
fn write_task_in_place(env: &TestEnv, id: u32, more: &str) {
    let text = format!(r#"{{"id":"{id}","subject":"part {id}",{more}}}"#);
    let path = env.root().join(format!("tasks/survey/{id}.json"));
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The number of created tasks in the event log.
fn count_logged_tasks(env: &TestEnv) -> usize {
    env.events().iter().filter(|event| event["event"] == "task_created").count()
}

/// An environment with a team whose daemon knows all [`TASK_COUNT`] tasks.
fn env_with_long_list() -> TestEnv {
    let env = TestEnv::with_team();
    (1..=TASK_COUNT).for_each(|id| write_task_in_place(&env, id, r#""status":"pending""#));
    env.wait_until("all tasks are in the event log", || {
        (count_logged_tasks(&env) == TASK_COUNT as usize).then_some(())
    });
    assert_eq!(env.json(["status"])["daemon"]["watch_mode"], "events");
    env
}

fn claim_task(env: &TestEnv) -> String {
    env.json(["task", "claim"])["task"]["id"].as_str().unwrap().to_owned()
}

/// Records which task files are opened by any process.
struct OpenTrace {
    directory: std::path::PathBuf,
    names: Receiver<String>,
    _watcher: notify::RecommendedWatcher,
}

impl OpenTrace {
    fn start(env: &TestEnv) -> OpenTrace {
        let (sender, names) = channel();
        let handle_event = move |event: notify::Result<notify::Event>| {
            let event = event.unwrap();
            let is_open_or_create =
                matches!(event.kind, EventKind::Access(AccessKind::Open(_)) | EventKind::Create(_));
            for path in event.paths.iter().filter(|_| is_open_or_create) {
                sender.send(path.file_name().unwrap().to_string_lossy().into_owned()).unwrap_or_default();
            }
        };
        let mut watcher = notify::recommended_watcher(handle_event).unwrap();
        let directory = env.root().join("tasks/survey");
        watcher.watch(&directory, RecursiveMode::NonRecursive).unwrap();
        OpenTrace { directory, names, _watcher: watcher }
    }

    /// The ids of the tasks whose files were opened since the last call. The file `last` marks the
    /// end of the events.
    fn opened_task_ids(&self) -> BTreeSet<u32> {
        let last = self.directory.join("last");
        File::create(&last).unwrap();
        std::fs::remove_file(last).unwrap();
        let mut tasks = BTreeSet::new();
        loop {
            let name = self.names.recv_timeout(harness::TIMEOUT).unwrap();
            if name == "last" {
                while self.names.try_recv().is_ok_and(|name| name == "last") {}
                return tasks;
            }
            tasks.extend(name.strip_suffix(".json").and_then(|id| id.parse::<u32>().ok()));
        }
    }
}

/// Runs `task claim` under strace. Returns the claimed task and the ids of the tasks whose files
/// the claim opens. [`OpenTrace`] would also record the daemon, which may scan all files at any
/// time.
fn trace_claim(env: &TestEnv) -> (String, BTreeSet<u32>) {
    let trace = env.path("out/trace");
    let mut command = env.command("strace");
    command.args(["-f", "-qq", "-e", "trace=openat,openat2", "-o"]).arg(&trace);
    let output =
        command.arg(harness::programs().join("teamctl")).args(["--json", "task", "claim"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let trace = env.read("out/trace");
    let parse_opened_id =
        |line: &str| line.split('"').nth(1)?.strip_suffix(".json")?.rsplit('/').next()?.parse::<u32>().ok();
    (reply["task"]["id"].as_str().unwrap().to_owned(), trace.lines().filter_map(parse_opened_id).collect())
}

/// As [`trace_claim`]. A claim that gets no hint in time reads all files. It is undone and repeated.
fn trace_hinted_claim(env: &TestEnv) -> (String, BTreeSet<u32>) {
    env.wait_until("a claim gets a hint", || {
        let (id, opened) = trace_claim(env);
        if opened.len() < TASK_COUNT as usize {
            return Some((id, opened));
        }
        env.teamctl(["task", "release", &id]).expect_success();
        None
    })
}

#[test]
fn claim_opens_only_the_task_and_its_blockers() {
    if harness::skips_without(harness::Facility::NamesInFileEvents) {
        return;
    }
    if !harness::can_trace("claims") {
        return;
    }
    let env = env_with_long_list();
    write_task_in_place(&env, 2, r#""status":"completed""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["2"]"#);
    env.wait_until("the completion of task 2 is in the event log", || {
        let completion = env.events().into_iter().find(|event| event["event"] == "task_completed");
        completion.filter(|event| event["task"] == "2").map(drop)
    });
    assert_eq!(trace_hinted_claim(&env), ("1".to_owned(), BTreeSet::from([1])));
    assert_eq!(trace_hinted_claim(&env), ("3".to_owned(), BTreeSet::from([2, 3])));
    env.kill_process(env.daemon_pid());
    let all_ids = (1..=TASK_COUNT).collect();
    assert_eq!(trace_claim(&env), ("4".to_owned(), all_ids), "without a daemon, the claim reads all tasks");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn named_task_is_claimed_without_reading_others() {
    let env = env_with_long_list();
    write_task_in_place(&env, 300, r#""status":"pending","blockedBy":["200"]"#);
    write_task_in_place(&env, 200, r#""status":"completed""#);
    env.wait_until("the completion of task 200 is in the event log", || {
        env.events().iter().any(|event| event["event"] == "task_completed").then_some(())
    });
    // A running daemon would open all task files at its next scan.
    env.kill_process(env.daemon_pid());
    let trace = OpenTrace::start(&env);
    let task = env.json(["task", "get", "300"])["task"].clone();
    assert_eq!((&task["available"], &task["open_blockers"]), (&json!(true), &json!([])));
    assert_eq!(trace.opened_task_ids(), BTreeSet::from([200, 300]));
    let mut mcp = McpClient::connect(&env, &["--team", "survey"]);
    let task = mcp.call("TaskUpdate", &json!({"taskId": "300", "status": "in_progress"})).unwrap();
    assert_eq!(task["task"]["owner"], "team-lead");
    assert_eq!(trace.opened_task_ids(), BTreeSet::from([200, 300]));
    mcp.close();
    env.start_daemon();
    env.shut_down();
}

/// Each claim takes a change into account that another program made just before.
#[test]
fn claim_sees_a_foreign_write_made_just_before() {
    let env = env_with_long_list();
    for round in 0..20 {
        let id = 40 + round;
        write_task_in_place(&env, id, r#""status":"pending","owner":"team-lead""#);
        assert_eq!(claim_task(&env), id.to_string(), "the lead's own task comes first");
        write_task_in_place(&env, id, r#""status":"completed""#);
        let lowest = 1 + round;
        assert_eq!(claim_task(&env), lowest.to_string());
        write_task_in_place(&env, lowest, r#""status":"pending","owner":null"#);
        assert_eq!(claim_task(&env), lowest.to_string(), "the released task has the lowest id again");
    }
    env.shut_down();
}

#[test]
fn claims_work_while_the_daemon_is_stopped() {
    let env = env_with_long_list();
    let paused_daemon = PausedProcess::new(env.daemon_pid());
    write_task_in_place(&env, 1, r#""status":"completed""#);
    write_task_in_place(&env, 2, r#""status":"in_progress","owner":"bob""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["2"]"#);
    assert_eq!(claim_task(&env), "4");
    assert_eq!(claim_task(&env), "5");
    drop(paused_daemon);
    assert_eq!(claim_task(&env), "6");
    write_task_in_place(&env, 2, r#""status":"completed""#);
    assert_eq!(claim_task(&env), "3");
    env.shut_down();
}

/// A `task claim` that is stopped after it has received the hint and before it reads the task.
struct StoppedClaim {
    claim: Option<Child>,
}

impl StoppedClaim {
    fn start(env: &TestEnv) -> StoppedClaim {
        env.write_file("crash/hits", "");
        env.write_file("crash/armed", "pause teamctl client.received 1\n");
        let mut claim = env.command(harness::programs().join("teamctl"));
        claim.args(["--json", "task", "claim"]).env("TEAMD_FAILPOINTS", env.path("crash"));
        let claim = claim.stdout(Stdio::piped()).spawn().unwrap();
        let stat = format!("/proc/{}/stat", claim.id());
        let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(());
        env.wait_until("the claim is stopped at the failpoint", is_stopped);
        StoppedClaim { claim: Some(claim) }
    }

    fn resume(mut self) -> String {
        let claim = self.claim.take().unwrap();
        continue_process(&claim);
        let output = claim.wait_with_output().unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        reply["task"]["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for StoppedClaim {
    fn drop(&mut self) {
        self.claim.iter().for_each(continue_process);
    }
}

fn continue_process(claim: &Child) {
    let pid = Pid::from_raw(i32::try_from(claim.id()).unwrap()).unwrap();
    kill_process(pid, Signal::CONT).unwrap_or_default();
}

#[test]
fn tasks_taken_or_blocked_meanwhile_are_skipped() {
    let env = env_with_long_list();
    let stopped_claim = StoppedClaim::start(&env);
    write_task_in_place(&env, 1, r#""status":"in_progress","owner":"bob""#);
    assert_eq!(stopped_claim.resume(), "2");
    write_task_in_place(&env, 4, r#""status":"completed""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["4"]"#);
    let stopped_claim = StoppedClaim::start(&env);
    write_task_in_place(&env, 4, r#""status":"in_progress","owner":"bob""#);
    assert_eq!(stopped_claim.resume(), "5", "the blocker of task 3 is not completed any more");
    let stopped_claim = StoppedClaim::start(&env);
    std::fs::remove_file(env.root().join("tasks/survey/6.json")).unwrap();
    assert_eq!(stopped_claim.resume(), "7");
    let tasks = env.tasks("survey");
    let task = |id: &str| tasks.iter().find(|task| task["id"] == id).unwrap().clone();
    assert_eq!(
        (&task("1")["owner"], &task("4")["owner"], &task("3")["owner"]),
        (&json!("bob"), &json!("bob"), &Value::Null)
    );
    env.shut_down();
}

/// Python program that sets a completed task to pending through a memory mapping of its file. Such
/// a write causes no file event.
const REOPEN_MAPPED_TASK: &str = r#"
import mmap, sys
file = open(sys.argv[1], 'r+b')
mapped = mmap.mmap(file.fileno(), 0)
at = mapped.find(b'completed"')
mapped[at:at + 10] = b'pending"  '
print('written', flush=True)
sys.stdin.read()
"#;

#[test]
fn no_available_task_is_decided_by_files() {
    let env = env_with_long_list();
    (1..=TASK_COUNT).for_each(|id| write_task_in_place(&env, id, r#""status":"completed""#));
    env.wait_until("all completions are in the event log", || {
        let completions = env.events().into_iter().filter(|event| event["event"] == "task_completed").count();
        (completions == TASK_COUNT as usize).then_some(())
    });
    assert_eq!(env.teamctl(["task", "claim"]).code, 67);
    let path = env.root().join("tasks/survey/77.json");
    let mut python = Command::new("python3");
    python.args(["-c", REOPEN_MAPPED_TASK]).arg(&path).env("TEST_DIR", env.path(""));
    let Ok(mut python) = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        record_skip("mapped", "python3 is not installed");
        return env.shut_down();
    };
    let mut line = String::new();
    BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(claim_task(&env), "77");
    drop(python.stdin.take());
    assert!(python.wait().unwrap().success());
    env.shut_down();
}

/// The foreign program claims tasks as Claude Code does: under the lock of the list and the lock of
/// the task, in place. At the same time, six loops of `teamctl task claim` run, and the tasks that
/// block others are completed in place without a lock.
#[test]
fn every_task_has_one_owner_beside_a_foreign_program() {
    const BLOCKER_COUNT: u32 = 20;
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers");
    if !scripts.join("node_modules").is_dir() {
        assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not installed: run make test");
        return record_skip("foreign-claims", "the node modules are not installed");
    }
    let env = TestEnv::with_team();
    for id in 1..=TASK_COUNT {
        let blocker = id.is_multiple_of(3).then(|| id % BLOCKER_COUNT + 1).filter(|blocker| *blocker < id);
        let more = match blocker {
            _ if id <= BLOCKER_COUNT => r#""status":"in_progress","owner":"bob""#.to_owned(),
            Some(blocker) => format!(r#""status":"pending","blockedBy":["{blocker}"]"#),
            None => r#""status":"pending""#.to_owned(),
        };
        write_task_in_place(&env, id, &more);
    }
    env.wait_until("all tasks are in the event log", || {
        (count_logged_tasks(&env) == TASK_COUNT as usize).then_some(())
    });
    let mut foreign = Command::new("node");
    foreign.arg(scripts.join("task_claimer.js")).arg(env.root().join("tasks/survey")).arg("bob");
    foreign.env("TEST_DIR", env.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut foreign = foreign.spawn().unwrap();
    let mut ids = foreign.stdin.take().unwrap();
    (0..150).for_each(|n| writeln!(ids, "{}", BLOCKER_COUNT + 1 + n * 3).unwrap());
    drop(ids);
    // No loop runs yet, so it wins the first task.
    let mut foreign_stdout = BufReader::new(foreign.stdout.take().unwrap());
    let mut foreign_output = String::new();
    foreign_stdout.read_line(&mut foreign_output).unwrap();
    let start_claim_loop = |_: u32| {
        let mut shell = env.command("sh");
        shell.args(["-c", "while teamctl --json task claim; do :; done"]);
        shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let claim_loops: Vec<Child> = (0..6).map(start_claim_loop).collect();
    (1..=BLOCKER_COUNT).for_each(|blocker| write_task_in_place(&env, blocker, r#""status":"completed""#));
    foreign_stdout.read_to_string(&mut foreign_output).unwrap();
    assert!(foreign.wait().unwrap().success());
    let outputs = claim_loops.into_iter().map(|child| child.wait_with_output().unwrap().stdout);
    // One more loop claims the tasks that were still blocked when the other loops ended.
    let last = start_claim_loop(0).wait_with_output().unwrap().stdout;
    let lines = outputs
        .chain([last])
        .flat_map(|output| String::from_utf8(output).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    let claimed_ids: Vec<u32> = lines
        .filter_map(|line| {
            let reply: Value = serde_json::from_str(&line).unwrap();
            reply["task"]["id"].as_str()?.parse().ok()
        })
        .collect();
    let foreign_ids = foreign_output.lines().enumerate().filter(|(_, word)| *word == "won");
    let foreign_ids: BTreeSet<u32> =
        foreign_ids.map(|(n, _)| BLOCKER_COUNT + 1 + u32::try_from(n).unwrap() * 3).collect();
    let own_ids: BTreeSet<u32> = claimed_ids.iter().copied().collect();
    assert_eq!(own_ids.len(), claimed_ids.len(), "no task was claimed twice");
    assert!(
        !foreign_ids.is_empty() && !own_ids.is_empty() && own_ids.is_disjoint(&foreign_ids),
        "{foreign_ids:?}"
    );
    assert_eq!(&own_ids | &foreign_ids, (BLOCKER_COUNT + 1..=TASK_COUNT).collect(), "every task was claimed");
    env.shut_down();
}

/// The second worker would run the command beside the first one.
#[test]
fn task_in_work_is_taken_away_only_after_its_run_has_ended() {
    let env = TestEnv::with_team();
    let gate = env.create_gate("out/go");
    let started = env.path("out/started").display().to_string();
    let command = format!("echo $TEAMD_MEMBER_NAME >>'{started}'; read line <'{gate}'");
    let metadata = json!({ "command": command }).to_string();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "think", "--owner", "ann", "--metadata", &metadata]).expect_success();
    let id = env.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    let runs = |count: usize| {
        env.wait_until(&format!("{count} runs have started"), || {
            let text = std::fs::read_to_string(&started).unwrap_or_default();
            (text.lines().count() == count).then_some(())
        });
    };
    runs(1);
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    for args in [
        &["task", "release", &id][..],
        &["task", "delete", &id],
        &["task", "update", &id, "--owner", "bob"],
        &["task", "update", &id, "--status", "pending"],
    ] {
        let output = env.teamctl_with(args, &[]);
        assert_eq!(output.code, 76, "{output:#?}");
        assert!(output.stderr.contains(&format!("cannot take task {id} from ann: process ")), "{output:#?}");
        assert!(output.stderr.contains("--force"), "{output:#?}");
    }
    env.teamctl(["task", "update", &id, "--owner", "bob", "--status", "pending", "--force"]).expect_success();
    runs(2);
    let task = env.json(["task", "get", &id])["task"].clone();
    assert_eq!((&task["owner"], &task["status"]), (&json!("bob"), &json!("in_progress")), "{task}");
    env.teamctl(["task", "delete", &id, "--force"]).expect_success();
    env.wait_until("bob is idle", || (env.member("bob")?["activity"] == "idle").then_some(()));
    env.shut_down();
}
