//! Tests a sender that is stopped while it holds an inbox's lock. The lock becomes stale meanwhile,
//! and a foreign program takes it over and writes. Afterwards the inbox has both messages, or the
//! sender has failed and its message is not stored.
//!
//! strace stops the sender after one system call: each call from taking the lock to the `stat` of
//! the inbox is tried. After that `stat` the sender checks that it still holds the lock. A stop
//! between this check and the rename cannot be noticed, so it is not tested. `STOPPED=n` sets how
//! often each call is tried.

use harness::foreign_writer::{ForeignWriter, WriterKind};
use harness::{TestEnv, can_trace, number_from_env, record_result, record_skip};
use std::collections::BTreeMap;
use std::process::Command;

/// The strace option that stops the sender, with the duration in µs. The stop is longer than the
/// ten seconds after which a lock is stale, and ends before the foreign program releases the lock.
const STOP: &str = "delay_exit=11200000";

/// The `nth` system call with the name `call` in a run.
struct SyscallPosition {
    call: String,
    nth: usize,
}

fn traced_send(env: &TestEnv, inbox: &str, strace: &[String]) -> Command {
    let mut command = env.command("strace");
    command.args(["-f", "-o"]).arg(env.path(&format!("out/{inbox}.trace"))).args(strace);
    command.arg(harness::programs().join("teamctl")).args(["send", inbox, "ours"]);
    command
}

/// Traces one send. Returns all its system calls from the `mkdirat` of the lock to the `newfstatat`
/// of the inbox, both included. The calls after them depend on the age of the inbox file.
fn syscall_positions(env: &TestEnv) -> Vec<SyscallPosition> {
    spawn_member(env, "ann");
    create_inbox(env, "ann");
    assert!(traced_send(env, "ann", &[]).output().unwrap().status.success());
    let (mut counts, mut positions, mut is_held) = (BTreeMap::<String, usize>::new(), Vec::new(), false);
    for line in env.read("out/ann.trace").lines() {
        let Some((call, args)) = line.split_once(' ').and_then(|(_, rest)| rest.trim_start().split_once('('))
        else {
            continue;
        };
        let nth = counts.entry(call.to_owned()).or_default();
        *nth += 1;
        is_held |= call == "mkdirat" && args.contains("ann.json.lock");
        if is_held {
            positions.push(SyscallPosition { call: call.to_owned(), nth: *nth });
        }
        if is_held && call == "newfstatat" && args.contains("ann.json\"") {
            return positions;
        }
    }
    panic!("the trace has no lock or no stat of the inbox: {}", env.read("out/ann.trace"));
}

fn spawn_member(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--backend", "in-process", "--", &env.scripted_agent_path(), "stay"])
        .expect_success();
}

/// Sends a first message, so that the inbox file exists. Creating the file takes other system
/// calls.
fn create_inbox(env: &TestEnv, inbox: &str) {
    env.teamctl(["send", inbox, "before"]).expect_success();
}

/// Stops a sender at a system call and runs a foreign writer meanwhile. Returns whether the foreign
/// writer took over the lock, or `None` if the foreign writer cannot run here.
fn send_stopped_at(
    env: &TestEnv,
    SyscallPosition { call, nth }: &SyscallPosition,
    inbox: &str,
) -> Option<bool> {
    create_inbox(env, inbox);
    let inject = format!("-einject={call}:{STOP}:when={nth}");
    let mut sender = traced_send(env, inbox, &[inject]).spawn().unwrap();
    let lock = env.root().join(format!("teams/survey/inboxes/{inbox}.json.lock"));
    env.wait_until("the sender has taken the lock", || lock.is_dir().then_some(()));
    let file = lock.with_extension("");
    let foreign = ForeignWriter::start(env, WriterKind::HoldLock, &file, "theirs", Some(1));
    let stored = sender.wait().unwrap().success();
    let report = foreign?.finish();
    assert_eq!((report.stored.len(), report.refused.len()), (1, 0), "{call} {nth}");
    let messages = env.inbox("survey", inbox);
    let count = |text: &str| messages.iter().filter(|message| message["text"] == text).count();
    assert_eq!((count("before"), count("theirs:0")), (1, 1), "stopped at {call} {nth}: {messages:#?}");
    assert_eq!(
        count("ours"),
        usize::from(stored),
        "stopped at {call} {nth}, stored: {stored}: {messages:#?}"
    );
    // Every writer appends its message. If the sender's message is the last one, the foreign
    // program has written first, so it had the lock.
    Some(!stored || messages.last().is_some_and(|last| last["text"] == "ours"))
}

#[test]
fn stopped_lock_holder_loses_and_overwrites_nothing() {
    if !can_trace("senders-stopped") {
        return;
    }
    let env = TestEnv::with_team();
    let positions = syscall_positions(&env);
    let (mut stops, mut takeovers) = (0, 0);
    for round in 0..number_from_env("STOPPED", 1) {
        let names: Vec<String> = (0..positions.len()).map(|index| format!("s{round}-{index}")).collect();
        for name in &names {
            spawn_member(&env, name);
        }
        let results: Vec<Option<bool>> = std::thread::scope(|scope| {
            let env = &env;
            let start_sender = |(position, name): (_, &String)| {
                let name = name.clone();
                scope.spawn(move || send_stopped_at(env, position, &name))
            };
            let senders: Vec<_> = positions.iter().zip(&names).map(start_sender).collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        stops += results.iter().flatten().count();
        takeovers += results.into_iter().flatten().filter(|taken_over| *taken_over).count();
    }
    env.shut_down();
    if stops == 0 {
        return record_skip("senders-stopped", "the foreign program can't be run here");
    }
    // On a busy machine the foreign program may be too late to take over a lock.
    assert!(takeovers * 2 > stops, "only {takeovers} of {stops} stopped senders lost their lock");
    record_result("senders-stopped", takeovers as u64);
}
