//! A program of ours is killed, or its disk fails it, at each of its system calls in turn: whatever it was doing is done
//! once or not at all, exit code 0 means done, and the next one is not in trouble.
//!
//! strace counts the calls of one run and then breaks one of them in each of the next; where it is not there, or may not
//! trace, that is said and nothing is swept.

use harness::{TestEnv, can_trace, record_result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that change something, or that a change stands on.
const CALLS: [&str; 13] = [
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

/// What one run of it does, seen from outside.
struct CliOperation {
    name: &'static str,
    /// What the `n`th is about.
    stored_kind: StoredKind,
    /// That is there before it is typed.
    exists_before: bool,
    /// Makes what the `n`th run works on, and says what it is to type.
    prepare: fn(&TestEnv, u64) -> Vec<String>,
    /// How often it is done, by then.
    count_done: fn(&TestEnv, u64) -> usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StoredKind {
    Message,
    Task,
}

/// Everything that must be there, once, from some moment on.
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

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A new task of that number; its id.
fn create_task(env: &TestEnv, n: u64) -> String {
    env.json(["task", "create", &message_text(n)])["task"]["id"].as_str().unwrap().to_owned()
}

/// Every file is whole at every instant.
fn count_messages(env: &TestEnv, text: &str, read: bool) -> usize {
    let inbox = env.inbox("survey", "ann");
    inbox.iter().filter(|message| message["text"] == text && message["read"] == read).count()
}

fn count_tasks(env: &TestEnv, is_it: impl Fn(&Value) -> bool) -> usize {
    env.tasks("survey").iter().filter(|task| is_it(task)).count()
}

/// A run of teamctl under strace with these words of strace's own.
fn run_traced(env: &TestEnv, strace: &[String], words: &[String]) -> i32 {
    let mut command = env.command("strace");
    command.args(["-f", "-o"]).arg(env.path("out/trace")).args(strace);
    command.arg(harness::programs().join("teamctl")).args(["-t", "survey"]).args(words);
    if words[0] == "inbox" {
        // It is its owner's to mark.
        command.envs([("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", "ann")]);
    }
    command.output().unwrap().status.code().unwrap_or(-1)
}

/// How often a run makes each of the calls.
fn count_syscalls(env: &TestEnv, words: &[String]) -> BTreeMap<&'static str, u64> {
    assert_eq!(run_traced(env, &[format!("-etrace={}", CALLS.join(","))], words), 0);
    let trace = env.read("out/trace");
    let times = |call: &&str| trace.lines().filter(|line| line.contains(&format!(" {call}("))).count() as u64;
    CALLS.into_iter().map(|call| (call, times(&call))).filter(|(_, times)| *times > 0).collect()
}

/// All there is, in order.
fn stored_items(env: &TestEnv) -> Vec<(StoredKind, String)> {
    let mails =
        env.inbox("survey", "ann").into_iter().map(|mail| (StoredKind::Message, mail["text"].clone()));
    let tasks = env.tasks("survey").into_iter().map(|task| (StoredKind::Task, task["subject"].clone()));
    let texts = mails.chain(tasks).filter_map(|(what, text)| Some((what, text.as_str()?.to_owned())));
    let mut all: Vec<_> = texts.filter(|(_, text)| text.starts_with("the ")).collect();
    all.sort();
    all
}

/// Whether the call was broken: a run may make one less than the one that was counted.
fn was_injected(env: &TestEnv) -> bool {
    let trace = env.read("out/trace");
    ["(INJECTED)", "killed by SIGKILL"].iter().any(|word| trace.contains(word))
}

/// Breaks every call of every operation with it, one in each run, counted on from `n`; how many were broken.
fn break_every_call(env: &TestEnv, kept: &mut StoredItemSet, inject: &str, mut n: u64) -> u64 {
    let mut broken = 0;
    for operation in &OPERATIONS {
        n += 1;
        let calls = count_syscalls(env, &(operation.prepare)(env, n));
        kept.insert((operation.stored_kind, message_text(n)));
        for (call, nth) in calls.iter().flat_map(|(call, times)| (1..=*times).map(move |nth| (call, nth))) {
            n += 1;
            let words = (operation.prepare)(env, n);
            let code = run_traced(env, &[format!("-einject={call}:{inject}:when={nth}")], &words);
            broken += u64::from(was_injected(env));
            let (done, at) =
                ((operation.count_done)(env, n), format!("{}, {inject} at {call} {nth}", operation.name));
            assert!(done <= 1, "{at}: done {done} times");
            assert!(code != 0 || done == 1, "{at}: exit code 0, and not done");
            if operation.exists_before || done == 1 {
                kept.insert((operation.stored_kind, message_text(n)));
            }
            assert_eq!(stored_items(env), Vec::from_iter(kept.iter().cloned()), "{at}");
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
    let points = break_every_call(&env, &mut StoredItemSet::new(), "signal=KILL", 0);
    assert_doctor_fixes(env);
    assert!(points > 100, "{points}");
    record_result("calls-killed", points);
}

#[test]
fn failed_disk_never_reports_success() {
    let mut env = env_without_daemon();
    if !can_trace("calls-failed") {
        return;
    }
    // So that it flushes, too.
    env.variables.push(("TEAMD_DURABILITY".to_owned(), "power".to_owned()));
    let mut kept = StoredItemSet::new();
    let points = break_every_call(&env, &mut kept, "error=ENOSPC", 0)
        + break_every_call(&env, &mut kept, "error=EIO", 10_000);
    assert_doctor_fixes(env);
    assert!(points > 200, "{points}");
    record_result("calls-failed", points);
}
