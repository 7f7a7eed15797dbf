//! A program of ours is killed, or its disk fails it, at each of its system calls in turn: whatever it was doing is done
//! once or not at all, exit code 0 means done, and the next one is not in trouble.
//!
//! strace counts the calls of one run and then breaks one of them in each of the next; where it is not there, or may not
//! trace, that is said and nothing is swept.

use harness::{House, can_trace, figure};
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
struct Operation {
    name: &'static str,
    /// What the `n`th is about.
    of: What,
    /// That is there before it is typed.
    is_there: bool,
    /// Makes what the `n`th run works on, and says what it is to type.
    begin: fn(&House, u64) -> Vec<String>,
    /// How often it is done, by then.
    done: fn(&House, u64) -> usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Mail,
    Task,
}

/// Everything that must be there, once, from some moment on.
type Kept = BTreeSet<(What, String)>;

const OPERATIONS: [Operation; 5] = [
    Operation {
        name: "send",
        of: What::Mail,
        is_there: false,
        begin: |_, n| words(&["send", "ann", &text(n)]),
        done: |house, n| mails(house, &text(n), false),
    },
    Operation {
        name: "inbox --mark-read",
        of: What::Mail,
        is_there: true,
        begin: |house, n| {
            house.teamctl(["send", "ann", &text(n)]).ok();
            words(&["inbox", "--unread", "--mark-read"])
        },
        done: |house, n| mails(house, &text(n), true),
    },
    Operation {
        name: "task create",
        of: What::Task,
        is_there: false,
        begin: |_, n| words(&["task", "create", &text(n)]),
        done: |house, n| tasks(house, |task| task["subject"] == text(n)),
    },
    Operation {
        name: "task claim",
        of: What::Task,
        is_there: true,
        begin: |house, n| {
            words(&["task", "update", &task(house, n), "--owner", "ann", "--status", "in_progress"])
        },
        done: |house, n| tasks(house, |task| task["subject"] == text(n) && task["owner"] == "ann"),
    },
    Operation {
        name: "task done",
        of: What::Task,
        is_there: true,
        begin: |house, n| words(&["task", "done", &task(house, n)]),
        done: |house, n| tasks(house, |task| task["subject"] == text(n) && task["status"] == "completed"),
    },
];

fn text(n: u64) -> String {
    format!("the {n}th")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A new task of that number; its id.
fn task(house: &House, n: u64) -> String {
    house.json(["task", "create", &text(n)])["task"]["id"].as_str().unwrap().to_owned()
}

/// Every file is whole at every instant.
fn mails(house: &House, text: &str, read: bool) -> usize {
    let inbox = house.inbox("survey", "ann");
    inbox.iter().filter(|message| message["text"] == text && message["read"] == read).count()
}

fn tasks(house: &House, is_it: impl Fn(&Value) -> bool) -> usize {
    house.tasks("survey").iter().filter(|task| is_it(task)).count()
}

/// A run of teamctl under strace with these words of strace's own.
fn traced(house: &House, strace: &[String], words: &[String]) -> i32 {
    let mut command = house.command("strace");
    command.args(["-f", "-o"]).arg(house.path("out/trace")).args(strace);
    command.arg(harness::programs().join("teamctl")).args(["-t", "survey"]).args(words);
    if words[0] == "inbox" {
        // It is its owner's to mark.
        command.envs([("TEAMD_TEAM", "survey"), ("TEAMD_AGENT", "ann")]);
    }
    command.output().unwrap().status.code().unwrap_or(-1)
}

/// How often a run makes each of the calls.
fn counted(house: &House, words: &[String]) -> BTreeMap<&'static str, u64> {
    assert_eq!(traced(house, &[format!("-etrace={}", CALLS.join(","))], words), 0);
    let trace = house.read("out/trace");
    let times = |call: &&str| trace.lines().filter(|line| line.contains(&format!(" {call}("))).count() as u64;
    CALLS.into_iter().map(|call| (call, times(&call))).filter(|(_, times)| *times > 0).collect()
}

/// All there is, in order.
fn there(house: &House) -> Vec<(What, String)> {
    let mails = house.inbox("survey", "ann").into_iter().map(|mail| (What::Mail, mail["text"].clone()));
    let tasks = house.tasks("survey").into_iter().map(|task| (What::Task, task["subject"].clone()));
    let texts = mails.chain(tasks).filter_map(|(what, text)| Some((what, text.as_str()?.to_owned())));
    let mut all: Vec<_> = texts.filter(|(_, text)| text.starts_with("the ")).collect();
    all.sort();
    all
}

/// Whether the call was broken: a run may make one less than the one that was counted.
fn is_broken(house: &House) -> bool {
    let trace = house.read("out/trace");
    ["(INJECTED)", "killed by SIGKILL"].iter().any(|word| trace.contains(word))
}

/// Breaks every call of every operation with it, one in each run, counted on from `n`; how many were broken.
fn sweep(house: &House, kept: &mut Kept, inject: &str, mut n: u64) -> u64 {
    let mut broken = 0;
    for operation in &OPERATIONS {
        n += 1;
        let calls = counted(house, &(operation.begin)(house, n));
        kept.insert((operation.of, text(n)));
        for (call, nth) in calls.iter().flat_map(|(call, times)| (1..=*times).map(move |nth| (call, nth))) {
            n += 1;
            let words = (operation.begin)(house, n);
            let code = traced(house, &[format!("-einject={call}:{inject}:when={nth}")], &words);
            broken += u64::from(is_broken(house));
            let (done, at) =
                ((operation.done)(house, n), format!("{}, {inject} at {call} {nth}", operation.name));
            assert!(done <= 1, "{at}: done {done} times");
            assert!(code != 0 || done == 1, "{at}: exit code 0, and not done");
            if operation.is_there || done == 1 {
                kept.insert((operation.of, text(n)));
            }
            assert_eq!(there(house), Vec::from_iter(kept.iter().cloned()), "{at}");
            house.age_unmarked();
        }
    }
    broken
}

fn without_a_daemon() -> House {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.kill_9(house.daemon());
    house
}

fn is_mended(house: House) {
    house.start_daemon();
    house.end_after_kills();
}

#[test]
fn killed_at_any_call_it_is_done_once_or_not_at_all() {
    let house = without_a_daemon();
    if !can_trace("calls-killed") {
        return;
    }
    let points = sweep(&house, &mut Kept::new(), "signal=KILL", 0);
    is_mended(house);
    assert!(points > 100, "{points}");
    figure("calls-killed", points);
}

#[test]
fn where_the_disk_is_full_or_fails_nothing_is_said_to_be_done_that_is_not() {
    let mut house = without_a_daemon();
    if !can_trace("calls-failed") {
        return;
    }
    // So that it flushes, too.
    house.variables.push(("TEAMD_DURABILITY".to_owned(), "power".to_owned()));
    let mut kept = Kept::new();
    let points = sweep(&house, &mut kept, "error=ENOSPC", 0) + sweep(&house, &mut kept, "error=EIO", 10_000);
    is_mended(house);
    assert!(points > 200, "{points}");
    figure("calls-failed", points);
}
