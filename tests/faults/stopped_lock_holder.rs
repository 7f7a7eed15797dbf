//! A sender that is stopped while it holds an inbox's lock, for so long that a foreign program takes the lock for
//! abandoned and writes: both messages are there in the end, or the sender says that its own is not.
//!
//! Stopped by strace after each system call from the lock to the look at the file that follows. Whether the lock is still
//! ours is asked after that; between the question and the rename there is nothing that could ask. `STOPPED=n` says how often
//! each is tried.

use harness::foreign_writer::{ForeignWriter, WriterKind};
use harness::{TestEnv, can_trace, iterations, record_result, record_skip};
use std::collections::BTreeMap;
use std::process::Command;

/// Longer than a lock must be old to be abandoned, µs; and not so long that the foreign program has done already.
const STOP: &str = "delay_exit=11200000";

/// The `nth` call of that name in a run.
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

/// Every call of a send from that which makes the lock's directory to the look at the file, both with them. What comes
/// after that look hangs on how long ago the file was written.
fn syscall_positions(env: &TestEnv) -> Vec<SyscallPosition> {
    spawn(env, "ann");
    create_inbox(env, "ann");
    assert!(traced_send(env, "ann", &[]).output().unwrap().status.success());
    let (mut counts, mut points, mut is_held) = (BTreeMap::<String, usize>::new(), Vec::new(), false);
    for line in env.read("out/ann.trace").lines() {
        let Some((call, words)) =
            line.split_once(' ').and_then(|(_, rest)| rest.trim_start().split_once('('))
        else {
            continue;
        };
        let nth = counts.entry(call.to_owned()).or_default();
        *nth += 1;
        is_held |= call == "mkdirat" && words.contains("ann.json.lock");
        if is_held {
            points.push(SyscallPosition { call: call.to_owned(), nth: *nth });
        }
        if is_held && call == "newfstatat" && words.contains("ann.json\"") {
            return points;
        }
    }
    panic!("a send takes the lock and looks at the file: {}", env.read("out/ann.trace"));
}

fn spawn(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--backend", "in-process", "--", &env.scripted_agent_path(), "stay"])
        .expect_success();
}

/// The first message makes the file, which is another way.
fn create_inbox(env: &TestEnv, inbox: &str) {
    env.teamctl(["send", inbox, "before"]).expect_success();
}

/// One sender stopped there, and whether the other had the lock meanwhile; none where there is no foreign program.
fn send_stopped_at(
    env: &TestEnv,
    SyscallPosition { call, nth }: &SyscallPosition,
    inbox: &str,
) -> Option<bool> {
    create_inbox(env, inbox);
    let inject = format!("-einject={call}:{STOP}:when={nth}");
    let mut sender = traced_send(env, inbox, &[inject]).spawn().unwrap();
    let lock = env.root().join(format!("teams/survey/inboxes/{inbox}.json.lock"));
    env.wait_until("it has the lock", || lock.is_dir().then_some(()));
    let file = lock.with_extension("");
    let foreign = ForeignWriter::start(env, WriterKind::HoldLock, &file, "theirs", Some(1));
    let stored = sender.wait().unwrap().success();
    let theirs = foreign?.finish();
    assert_eq!((theirs.stored.len(), theirs.refused.len()), (1, 0), "{call} {nth}");
    let texts = env.inbox("survey", inbox);
    let count = |text: &str| texts.iter().filter(|message| message["text"] == text).count();
    assert_eq!((count("before"), count("theirs:0")), (1, 1), "stopped at {call} {nth}: {texts:#?}");
    assert_eq!(count("ours"), usize::from(stored), "stopped at {call} {nth}, stored: {stored}: {texts:#?}");
    // Whoever waits for a lock writes what it has behind all that is there.
    Some(!stored || texts.last().is_some_and(|last| last["text"] == "ours"))
}

#[test]
fn stopped_lock_holder_loses_and_overwrites_nothing() {
    if !can_trace("senders-stopped") {
        return;
    }
    let env = TestEnv::with_team();
    let points = syscall_positions(&env);
    let (mut tried, mut taken) = (0, 0);
    for round in 0..iterations("STOPPED", 1) {
        let names: Vec<String> = (0..points.len()).map(|which| format!("s{round}-{which}")).collect();
        for name in &names {
            spawn(&env, name);
        }
        let done: Vec<Option<bool>> = std::thread::scope(|scope| {
            let env = &env;
            let stopping = |(point, name): (_, &String)| {
                let name = name.clone();
                scope.spawn(move || send_stopped_at(env, point, &name))
            };
            let all: Vec<_> = points.iter().zip(&names).map(stopping).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        tried += done.iter().flatten().count();
        taken += done.into_iter().flatten().filter(|taken| *taken).count();
    }
    env.shut_down();
    if tried == 0 {
        return record_skip("senders-stopped", "the foreign program can't be run here");
    }
    // It may come too late where much else runs.
    assert!(taken * 2 > tried, "of {tried} stopped ones {taken} lost their lock");
    record_result("senders-stopped", taken as u64);
}
