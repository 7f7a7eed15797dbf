//! Real foreign writers, with the package that Claude Code locks with, beside ours on one inbox.
//!
//! Of ours nothing is lost or doubled, nor of theirs that retry; of those that do not, just what they say was
//! refused. Whoever reads through the store meanwhile sees whole arrays alone, though some of them truncate.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(unreachable_pub, reason = "nothing here is reached from outside")]

#[path = "store/fixture.rs"]
mod fixture;

use fixture::{TestRoot, agent, list_dir, message, overwrite_in_place, report_skipped, sleep_ms};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::{NewTask, Tasks};

const MESSAGES_EACH: usize = 100;

/// Where the writers are; none where this machine has not what they need, which is no excuse where `FOREIGN` is set.
fn writers() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/writers");
    let missing = if !dir.join("node_modules/proper-lockfile").is_dir() {
        "the node modules are not there: make test brings them"
    } else if Command::new("node").arg("--version").output().is_err() {
        "node is not installed"
    } else {
        return Some(dir);
    };
    assert!(std::env::var_os("FOREIGN").is_none(), "{missing}");
    report_skipped("foreign-writers-of-a-store", missing);
    None
}

fn writer(dir: &Path, mode: &str, file: &Path, prefix: &str) -> Child {
    let mut command = Command::new("node");
    command.arg(dir.join("inbox_writer.js")).arg(mode).arg(file).args([prefix, &MESSAGES_EACH.to_string()]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// What a writer says it stored and what was refused.
fn outcome(writer: Child) -> [Vec<String>; 2] {
    let ran = writer.wait_with_output().unwrap();
    assert!(ran.status.success());
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
    ["stored", "refused"].map(|key| serde_json::from_value(said[key].clone()).unwrap())
}

#[test]
fn beside_foreign_writers_nothing_of_ours_is_lost_and_nothing_that_they_stored() {
    let Some(dir) = writers() else { return };
    let ground = TestRoot::new();
    let file = ground.inbox_path("bob.json");
    let over = AtomicBool::new(false);
    let mut expected = BTreeMap::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| watch(&ground, &over));
        let theirs = [("sync", "s1"), ("sync", "s2"), ("async", "a1"), ("async", "a2")];
        let theirs = theirs.map(|(mode, prefix)| (mode, writer(&dir, mode, &file, prefix)));
        let ours = ["o1", "o2"].map(|prefix| {
            let ground = &ground;
            scope.spawn(move || send(ground, prefix))
        });
        for (mode, writer) in theirs {
            let [stored, refused] = outcome(writer);
            assert!(mode == "sync" || refused.is_empty(), "who retries stores all");
            assert_eq!(stored.len() + refused.len(), MESSAGES_EACH);
            println!("{mode}: {} of {MESSAGES_EACH} refused", refused.len());
            assert!(stored.len() >= MESSAGES_EACH / 10, "who never retries is hardly ever let in");
            expected.extend(stored.into_iter().map(|text| (text, 1)));
        }
        for (prefix, sender) in ["o1", "o2"].into_iter().zip(ours) {
            sender.join().unwrap();
            expected.extend((0..MESSAGES_EACH).map(|n| (format!("{prefix}:{n}"), 1)));
        }
        over.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    assert_eq!(counted(&texts(&ground)), expected);
    assert_eq!(list_dir(&ground.inbox_path("")), [file], "no lock and no temporary file is left");
    assert!(ground.backups().is_empty(), "nothing was taken for damaged");
}

fn send(ground: &TestRoot, prefix: &str) {
    let inbox = ground.reopen_team().inbox(&agent("bob"));
    for n in 0..MESSAGES_EACH {
        inbox.append(&message(&format!("{prefix}:{n}"))).unwrap();
        sleep_ms(3);
    }
}

/// Reads without pause: each look must find at least what the one before found.
fn watch(ground: &TestRoot, over: &AtomicBool) -> usize {
    let mut most = 0;
    while !over.load(Ordering::Relaxed) {
        let seen = texts(ground).len();
        assert!(seen >= most, "{seen} after {most}");
        most = seen;
    }
    most
}

fn texts(ground: &TestRoot) -> Vec<String> {
    let entries = ground.team.inbox(&agent("bob")).read().unwrap();
    entries.into_iter().map(|entry| entry.message.unwrap().text).collect()
}

fn counted(texts: &[String]) -> BTreeMap<String, i32> {
    let mut counts = BTreeMap::new();
    texts.iter().for_each(|text| *counts.entry(text.clone()).or_insert(0) += 1);
    counts
}

#[test]
fn a_lock_that_a_foreign_program_holds_is_waited_for_and_ours_keeps_it_out() {
    let Some(dir) = writers() else { return };
    let ground = TestRoot::new();
    let file = ground.inbox_path("bob.json");
    overwrite_in_place(&file, "[]");
    let script = "require('proper-lockfile').lockSync(process.argv[1]); \
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); \
        require('proper-lockfile').unlockSync(process.argv[1]);";
    let mut holder = Command::new("node").current_dir(&dir).args(["-e", script]).arg(&file).spawn().unwrap();
    while !ground.inbox_path("bob.json.lock").exists() {
        sleep_ms(5);
    }
    let start = Instant::now();
    ground.team.inbox(&agent("bob")).append(&message("x")).unwrap();
    assert!(start.elapsed().as_millis() > 1000, "{:?}", start.elapsed());
    assert!(holder.wait().unwrap().success());
    std::fs::create_dir(ground.inbox_path("bob.json.lock")).unwrap();
    let [stored, refused] = outcome(writer(&dir, "sync", &file, "s"));
    assert_eq!((stored.len(), refused.len()), (0, MESSAGES_EACH), "a lock like ours keeps them out");
}

#[test]
fn a_task_list_that_another_tool_flocks_is_waited_for() {
    let ground = TestRoot::new();
    let lock = std::fs::File::open(ground.team.tasks().path().join(".lock")).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        let tasks: Tasks = ground.reopen_team().tasks();
        let start = Instant::now();
        let creator = scope.spawn(move || tasks.create(NewTask::new("x", &agent("ann"))).unwrap());
        sleep_ms(500);
        lock.unlock().unwrap();
        creator.join().unwrap();
        assert!(start.elapsed().as_millis() >= 500);
    });
}
