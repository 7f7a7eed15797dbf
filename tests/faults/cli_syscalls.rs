//! Kills teamctl, or lets its disk fail, at each of its system calls in turn. Tests that an
//! operation is then done once or not at all, that exit code 0 means done, and that the next
//! command works.
//!
//! strace counts the system calls of one run, and then breaks one call in each further run. The
//! tests are skipped if strace is missing or may not trace.

use harness::{TestEnv, can_trace, record_result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// System calls that change a file, or on which a change depends.
const SYSCALLS: [&str; 13] = [
    "openat",
    "write",
    "mkdirat",
    "renameat",
    "renameat2",
    "unlinkat",
    "linkat",
    "fchmod",
    "ftruncate",
    "utimensat",
    "fsync",
    "fdatasync",
    "flock",
];

/// An operation of teamctl, and how to check its effect.
struct CliOperation {
    name: &'static str,
    /// What the operation creates or changes.
    stored_kind: StoredKind,
    /// Whether that item exists before the operation.
    exists_before: bool,
    /// Creates what the `n`th run works on, and returns the run's arguments.
    prepare: fn(&TestEnv, u64) -> Vec<String>,
    /// Returns how often the `n`th run is done.
    count_done: fn(&TestEnv, u64) -> usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StoredKind {
    Message,
    Task,
}

/// The messages and tasks that must exist exactly once.
type StoredItemSet = BTreeSet<(StoredKind, String)>;

const OPERATIONS: [CliOperation; 5] = [
    CliOperation {
        name: "send",
        stored_kind: StoredKind::Message,
        exists_before: false,
        prepare: |_, n| to_strings(&["send", "ann", &message_text(n)]),
        count_done: |env, n| count_messages(env, &message_text(n), false),
    },
    CliOperation {
        name: "inbox --mark-read",
        stored_kind: StoredKind::Message,
        exists_before: true,
        prepare: |env, n| {
            env.teamctl(["send", "ann", &message_text(n)]).expect_success();
            to_strings(&["inbox", "--unread", "--mark-read"])
        },
        count_done: |env, n| count_messages(env, &message_text(n), true),
    },
    CliOperation {
        name: "task create",
        stored_kind: StoredKind::Task,
        exists_before: false,
        prepare: |_, n| to_strings(&["task", "create", &message_text(n)]),
        count_done: |env, n| count_tasks(env, |task| task["subject"] == message_text(n)),
    },
    CliOperation {
        name: "task claim",
        stored_kind: StoredKind::Task,
        exists_before: true,
        prepare: |env, n| {
            to_strings(&["task", "update", &create_task(env, n), "--owner", "ann", "--status", "in_progress"])
        },
        count_done: |env, n| {
            count_tasks(env, |task| task["subject"] == message_text(n) && task["owner"] == "ann")
        },
    },
    CliOperation {
        name: "task done",
        stored_kind: StoredKind::Task,
        exists_before: true,
        prepare: |env, n| to_strings(&["task", "done", &create_task(env, n)]),
        count_done: |env, n| {
            count_tasks(env, |task| task["subject"] == message_text(n) && task["status"] == "completed")
        },
    },
];

fn message_text(n: u64) -> String {
    format!("the {n}th")
}

fn to_strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Creates the task of the `n`th run and returns its id.
fn create_task(env: &TestEnv, n: u64) -> String {
    env.json(["task", "create", &message_text(n)])["task"]["id"].as_str().unwrap().to_owned()
}

/// Counts messages in ann's inbox. Fails if the inbox is not valid JSON at any time.
fn count_messages(env: &TestEnv, text: &str, read: bool) -> usize {
    let inbox = env.inbox("survey", "ann");
    inbox.iter().filter(|message| message["text"] == text && message["read"] == read).count()
}

fn count_tasks(env: &TestEnv, is_wanted: impl Fn(&Value) -> bool) -> usize {
    env.tasks("survey").iter().filter(|task| is_wanted(task)).count()
}

/// Runs teamctl under strace with the given options of strace, and returns the exit code.
fn run_traced(env: &TestEnv, strace: &[String], args: &[String]) -> i32 {
    let mut command = env.command("strace");
    command.args(["-f", "-o"]).arg(env.path("out/trace")).args(strace);
    command.arg(harness::programs().join("teamctl")).args(["-t", "survey"]).args(args);
    if args[0] == "inbox" {
        // Only the owner of an inbox may mark its messages read.
        command.envs([("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", "ann")]);
    }
    command.output().unwrap().status.code().unwrap_or(-1)
}

/// Counts how often a run makes each system call.
fn count_syscalls(env: &TestEnv, args: &[String]) -> BTreeMap<&'static str, u64> {
    assert_eq!(run_traced(env, &[format!("-etrace={}", SYSCALLS.join(","))], args), 0);
    let trace = env.read("out/trace");
    let count = |call: &&str| trace.lines().filter(|line| line.contains(&format!(" {call}("))).count() as u64;
    SYSCALLS.into_iter().map(|call| (call, count(&call))).filter(|(_, count)| *count > 0).collect()
}

/// Returns all messages and tasks of the test, sorted.
fn stored_items(env: &TestEnv) -> Vec<(StoredKind, String)> {
    let messages =
        env.inbox("survey", "ann").into_iter().map(|message| (StoredKind::Message, message["text"].clone()));
    let tasks = env.tasks("survey").into_iter().map(|task| (StoredKind::Task, task["subject"].clone()));
    let texts = messages.chain(tasks).filter_map(|(kind, text)| Some((kind, text.as_str()?.to_owned())));
    let mut items: Vec<_> = texts.filter(|(_, text)| text.starts_with("the ")).collect();
    items.sort();
    items
}

/// Whether strace has broken a call. A run may make fewer calls than the counted one.
fn was_injected(env: &TestEnv) -> bool {
    let trace = env.read("out/trace");
    ["(INJECTED)", "killed by SIGKILL"].iter().any(|marker| trace.contains(marker))
}

/// Breaks each system call of each operation with the strace option `inject`, one call in each run.
/// The runs are numbered from `n + 1`. Returns how many calls were broken.
fn break_every_call(env: &TestEnv, expected: &mut StoredItemSet, inject: &str, mut n: u64) -> u64 {
    let mut broken = 0;
    for operation in &OPERATIONS {
        n += 1;
        let calls = count_syscalls(env, &(operation.prepare)(env, n));
        expected.insert((operation.stored_kind, message_text(n)));
        for (call, nth) in calls.iter().flat_map(|(call, count)| (1..=*count).map(move |nth| (call, nth))) {
            n += 1;
            let args = (operation.prepare)(env, n);
            let code = run_traced(env, &[format!("-einject={call}:{inject}:when={nth}")], &args);
            broken += u64::from(was_injected(env));
            let done = (operation.count_done)(env, n);
            let case = format!("{}, {inject} at {call} {nth}", operation.name);
            assert!(done <= 1, "{case}: done {done} times");
            assert!(code != 0 || done == 1, "{case}: exit code 0, but not done");
            if operation.exists_before || done == 1 {
                expected.insert((operation.stored_kind, message_text(n)));
            }
            assert_eq!(stored_items(env), Vec::from_iter(expected.iter().cloned()), "{case}");
            env.age_foreign_locks();
        }
    }
    broken
}

fn env_without_daemon() -> TestEnv {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.kill_process(env.daemon_pid());
    env
}

fn assert_doctor_fixes(env: TestEnv) {
    env.start_daemon();
    env.shut_down_after_kills();
}

#[test]
fn killed_command_is_done_once_or_not_at_all() {
    let env = env_without_daemon();
    if !can_trace("calls-killed") {
        return;
    }
    let broken_calls = break_every_call(&env, &mut StoredItemSet::new(), "signal=KILL", 0);
    assert_doctor_fixes(env);
    assert!(broken_calls > 100, "{broken_calls}");
    record_result("calls-killed", broken_calls);
}

#[test]
fn failed_disk_never_reports_success() {
    let mut env = env_without_daemon();
    if !can_trace("calls-failed") {
        return;
    }
    // With this durability teamctl also calls fsync and fdatasync.
    env.variables.push(("TEAMD_DURABILITY".to_owned(), "power".to_owned()));
    let mut expected = StoredItemSet::new();
    let broken_calls = break_every_call(&env, &mut expected, "error=ENOSPC", 0)
        + break_every_call(&env, &mut expected, "error=EIO", 10_000);
    assert_doctor_fixes(env);
    assert!(broken_calls > 200, "{broken_calls}");
    record_result("calls-failed", broken_calls);
}
