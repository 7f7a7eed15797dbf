//! Claims of a long list, beside a daemon that is told what changes: it says which task is next, and the files decide.

use crate::why::PausedProcess;
use harness::{McpClient, TestEnv, record_skip};
use notify::event::{AccessKind, EventKind};
use notify::{RecursiveMode, Watcher};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// So many that whoever claims asks first.
const TASK_COUNT: u32 = 600;

/// As programs write a task that are not ours: truncated, in place, without a lock.
fn write_task_in_place(env: &TestEnv, id: u32, more: &str) {
    let text = format!(r#"{{"id":"{id}","subject":"part {id}",{more}}}"#);
    let path = env.root().join(format!("tasks/survey/{id}.json"));
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Which the daemon has told of, whose log this is.
fn count_logged_tasks(env: &TestEnv) -> usize {
    env.events().iter().filter(|event| event["event"] == "task_created").count()
}

/// A team with a long list, and a daemon that knows it.
fn env_with_long_list() -> TestEnv {
    let env = TestEnv::with_team();
    (1..=TASK_COUNT).for_each(|id| write_task_in_place(&env, id, r#""status":"pending""#));
    env.wait_until("it has been told", || (count_logged_tasks(&env) == TASK_COUNT as usize).then_some(()));
    assert_eq!(env.json(["status"])["daemon"]["watch_mode"], "events");
    env
}

fn claim_task(env: &TestEnv) -> String {
    env.json(["task", "claim"])["task"]["id"].as_str().unwrap().to_owned()
}

/// Sees which tasks' files are opened, by whomever.
struct OpenTrace {
    env: std::path::PathBuf,
    names: Receiver<String>,
    _watcher: notify::RecommendedWatcher,
}

impl OpenTrace {
    fn start(env: &TestEnv) -> OpenTrace {
        let (tell, names) = channel();
        let saw = move |event: notify::Result<notify::Event>| {
            let event = event.unwrap();
            let is_told = matches!(event.kind, EventKind::Access(AccessKind::Open(_)) | EventKind::Create(_));
            for path in event.paths.iter().filter(|_| is_told) {
                tell.send(path.file_name().unwrap().to_string_lossy().into_owned()).unwrap_or_default();
            }
        };
        let mut watcher = notify::recommended_watcher(saw).unwrap();
        let env = env.root().join("tasks/survey");
        watcher.watch(&env, RecursiveMode::NonRecursive).unwrap();
        OpenTrace { env, names, _watcher: watcher }
    }

    /// Since the last call.
    fn opened_task_ids(&self) -> BTreeSet<u32> {
        let last = self.env.join("last");
        File::create(&last).unwrap();
        std::fs::remove_file(last).unwrap();
        let mut tasks = BTreeSet::new();
        loop {
            let name = self.names.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
            if name == "last" {
                while self.names.try_recv().is_ok_and(|name| name == "last") {}
                return tasks;
            }
            tasks.extend(name.strip_suffix(".json").and_then(|id| id.parse::<u32>().ok()));
        }
    }
}

/// What a claim takes, and the tasks whose files it opens itself: the daemon may look at all of them at any time.
fn trace_claim(env: &TestEnv) -> (String, BTreeSet<u32>) {
    let trace = env.path("out/trace");
    let mut command = env.command("strace");
    command.args(["-f", "-qq", "-e", "trace=openat,openat2", "-o"]).arg(&trace);
    let ran =
        command.arg(harness::programs().join("teamctl")).args(["--json", "task", "claim"]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let trace = env.read("out/trace");
    let opened =
        |line: &str| line.split('"').nth(1)?.strip_suffix(".json")?.rsplit('/').next()?.parse::<u32>().ok();
    (said["task"]["id"].as_str().unwrap().to_owned(), trace.lines().filter_map(opened).collect())
}

#[test]
fn claim_opens_only_the_task_and_its_blockers() {
    if !harness::can_trace("claims") {
        return;
    }
    let env = env_with_long_list();
    write_task_in_place(&env, 2, r#""status":"completed""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["2"]"#);
    env.wait_until("it has been told", || {
        let done = env.events().into_iter().find(|event| event["event"] == "task_completed");
        done.filter(|event| event["task"] == "2").map(drop)
    });
    assert_eq!(trace_claim(&env), ("1".to_owned(), BTreeSet::from([1])));
    assert_eq!(trace_claim(&env), ("3".to_owned(), BTreeSet::from([2, 3])));
    env.kill_process(env.daemon_pid());
    let all = (1..=TASK_COUNT).collect();
    assert_eq!(trace_claim(&env), ("4".to_owned(), all), "without a daemon there is a look at all");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn named_task_is_claimed_without_reading_others() {
    let env = env_with_long_list();
    write_task_in_place(&env, 300, r#""status":"pending","blockedBy":["200"]"#);
    write_task_in_place(&env, 200, r#""status":"completed""#);
    env.wait_until("it has been told", || {
        env.events().iter().any(|event| event["event"] == "task_completed").then_some(())
    });
    // It looks at all of them now and then.
    env.kill_process(env.daemon_pid());
    let opened = OpenTrace::start(&env);
    let task = env.json(["task", "get", "300"])["task"].clone();
    assert_eq!((&task["available"], &task["open_blockers"]), (&json!(true), &json!([])));
    assert_eq!(opened.opened_task_ids(), BTreeSet::from([200, 300]));
    let mut mcp = McpClient::connect(&env, &["--team", "survey"]);
    let task = mcp.call("TaskUpdate", &json!({"taskId": "300", "status": "in_progress"})).unwrap();
    assert_eq!(task["task"]["owner"], "team-lead");
    assert_eq!(opened.opened_task_ids(), BTreeSet::from([200, 300]));
    mcp.close();
    env.start_daemon();
    env.shut_down();
}

/// Each claim finds what was written just before it, as it would at the files.
#[test]
fn claim_sees_a_foreign_write_made_just_before() {
    let env = env_with_long_list();
    for round in 0..20 {
        let id = 40 + round;
        write_task_in_place(&env, id, r#""status":"pending","owner":"team-lead""#);
        assert_eq!(claim_task(&env), id.to_string(), "the lead's own comes first");
        write_task_in_place(&env, id, r#""status":"completed""#);
        let lowest = 1 + round;
        assert_eq!(claim_task(&env), lowest.to_string());
        write_task_in_place(&env, lowest, r#""status":"pending","owner":null"#);
        assert_eq!(claim_task(&env), lowest.to_string(), "given back, it is the lowest again");
    }
    env.shut_down();
}

#[test]
fn claims_work_while_the_daemon_is_stopped() {
    let env = env_with_long_list();
    let stopped = PausedProcess::new(env.daemon_pid());
    write_task_in_place(&env, 1, r#""status":"completed""#);
    write_task_in_place(&env, 2, r#""status":"in_progress","owner":"bob""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["2"]"#);
    assert_eq!(claim_task(&env), "4");
    assert_eq!(claim_task(&env), "5");
    drop(stopped);
    assert_eq!(claim_task(&env), "6");
    write_task_in_place(&env, 2, r#""status":"completed""#);
    assert_eq!(claim_task(&env), "3");
    env.shut_down();
}

/// A claim that knows which is next, and has not looked at it yet.
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
        let stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(());
        env.wait_until("it has its answer", stopped);
        StoppedClaim { claim: Some(claim) }
    }

    fn resume(mut self) -> String {
        let claim = self.claim.take().unwrap();
        continue_process(&claim);
        let ran = claim.wait_with_output().unwrap();
        let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
        told["task"]["id"].as_str().unwrap().to_owned()
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
    let held = StoppedClaim::start(&env);
    write_task_in_place(&env, 1, r#""status":"in_progress","owner":"bob""#);
    assert_eq!(held.resume(), "2");
    write_task_in_place(&env, 4, r#""status":"completed""#);
    write_task_in_place(&env, 3, r#""status":"pending","blockedBy":["4"]"#);
    let held = StoppedClaim::start(&env);
    write_task_in_place(&env, 4, r#""status":"in_progress","owner":"bob""#);
    assert_eq!(held.resume(), "5", "what 3 waits for was opened again");
    let held = StoppedClaim::start(&env);
    std::fs::remove_file(env.root().join("tasks/survey/6.json")).unwrap();
    assert_eq!(held.resume(), "7");
    let tasks = env.tasks("survey");
    let of = |id: &str| tasks.iter().find(|task| task["id"] == id).unwrap().clone();
    assert_eq!(
        (&of("1")["owner"], &of("4")["owner"], &of("3")["owner"]),
        (&json!("bob"), &json!("bob"), &Value::Null)
    );
    env.shut_down();
}

/// Opens a completed task in a file that it has mapped, and keeps it so: nobody is told of that.
const MAPPED: &str = r#"
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
    env.wait_until("it has been told", || {
        let done = env.events().into_iter().filter(|event| event["event"] == "task_completed").count();
        (done == TASK_COUNT as usize).then_some(())
    });
    assert_eq!(env.teamctl(["task", "claim"]).code, 67);
    let path = env.root().join("tasks/survey/77.json");
    let mut python = Command::new("python3");
    python.args(["-c", MAPPED]).arg(&path).env("TEST_DIR", env.path(""));
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

/// With the two locks of its kind, and in place, it takes what ours try for at the same time; and what others wait for it
/// ends without any.
#[test]
fn every_task_has_one_owner_beside_a_foreign_program() {
    const GATES: u32 = 20;
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers");
    if !scripts.join("node_modules").is_dir() {
        assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not there: run make test");
        return record_skip("foreign-claims", "the node modules are not there");
    }
    let env = TestEnv::with_team();
    for id in 1..=TASK_COUNT {
        let gate = id.is_multiple_of(3).then(|| id % GATES + 1).filter(|gate| *gate < id);
        let more = match gate {
            _ if id <= GATES => r#""status":"in_progress","owner":"bob""#.to_owned(),
            Some(gate) => format!(r#""status":"pending","blockedBy":["{gate}"]"#),
            None => r#""status":"pending""#.to_owned(),
        };
        write_task_in_place(&env, id, &more);
    }
    env.wait_until("it has been told", || (count_logged_tasks(&env) == TASK_COUNT as usize).then_some(()));
    let mut foreign = Command::new("node");
    foreign.arg(scripts.join("task_claimer.js")).arg(env.root().join("tasks/survey")).arg("bob");
    foreign.env("TEST_DIR", env.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut foreign = foreign.spawn().unwrap();
    let mut ids = foreign.stdin.take().unwrap();
    (0..150).for_each(|n| writeln!(ids, "{}", GATES + 1 + n * 3).unwrap());
    drop(ids);
    let take = |_: u32| {
        let mut looping = env.command("sh");
        looping.args(["-c", "while teamctl --json task claim; do :; done"]);
        looping.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let ours: Vec<Child> = (0..6).map(take).collect();
    (1..=GATES).for_each(|gate| write_task_in_place(&env, gate, r#""status":"completed""#));
    let said = foreign.wait_with_output().unwrap();
    assert!(said.status.success());
    let outputs = ours.into_iter().map(|child| child.wait_with_output().unwrap().stdout);
    // Those that waited when the last of ours had looked.
    let last = take(0).wait_with_output().unwrap().stdout;
    let all = outputs
        .chain([last])
        .flat_map(|output| String::from_utf8(output).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    let taken: Vec<u32> = all
        .filter_map(|line| {
            let told: Value = serde_json::from_str(&line).unwrap();
            told["task"]["id"].as_str()?.parse().ok()
        })
        .collect();
    let theirs = String::from_utf8(said.stdout).unwrap();
    let won = theirs.lines().enumerate().filter(|(_, word)| *word == "won");
    let won: BTreeSet<u32> = won.map(|(n, _)| GATES + 1 + u32::try_from(n).unwrap() * 3).collect();
    let ours: BTreeSet<u32> = taken.iter().copied().collect();
    assert_eq!(ours.len(), taken.len(), "none was taken twice");
    assert!(!won.is_empty() && !ours.is_empty() && ours.is_disjoint(&won), "{won:?}");
    assert_eq!(&ours | &won, (GATES + 1..=TASK_COUNT).collect(), "none is left");
    env.shut_down();
}
