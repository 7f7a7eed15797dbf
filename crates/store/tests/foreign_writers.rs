//! Runs real foreign writers, with the lock library of Claude Code, next to the store on one inbox.
//!
//! The store and foreign writers that retry do not lose or duplicate messages. A foreign writer
//! that does not retry loses only the messages that it reports as refused. A reader through the
//! store sees only complete arrays, although some foreign writers truncate the file.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(unreachable_pub, reason = "no other crate uses the items of a test")]

#[path = "store/test_root.rs"]
mod test_root;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::{NewTask, Tasks};
use test_root::{TestRoot, agent, list_dir, message, overwrite_in_place, report_skipped, sleep_ms};

const MESSAGES_EACH: usize = 100;

/// The directory of the foreign writers. `None` if Node or its modules are not installed; the
/// function panics instead if `FOREIGN` is set.
fn writers_dir() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/writers");
    let missing = if !dir.join("node_modules/proper-lockfile").is_dir() {
        "the node modules are missing; `make test` installs them"
    } else if Command::new("node").arg("--version").output().is_err() {
        "node is not installed"
    } else {
        return Some(dir);
    };
    assert!(std::env::var_os("FOREIGN").is_none(), "{missing}");
    report_skipped("foreign-writers-of-a-store", missing);
    None
}

fn start_writer(dir: &Path, mode: &str, file: &Path, prefix: &str) -> Child {
    let mut command = Command::new("node");
    command.arg(dir.join("inbox_writer.js")).arg(mode).arg(file).args([prefix, &MESSAGES_EACH.to_string()]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The messages that a writer reports as stored and as refused.
fn outcome(writer: Child) -> [Vec<String>; 2] {
    let output = writer.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    ["stored", "refused"].map(|key| serde_json::from_value(report[key].clone()).unwrap())
}

#[test]
fn no_stored_message_is_lost_next_to_foreign_writers() {
    let Some(dir) = writers_dir() else { return };
    let env = TestRoot::new();
    let file = env.inbox_path("bob.json");
    let is_done = AtomicBool::new(false);
    let mut expected = BTreeMap::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_repeatedly(&env, &is_done));
        let foreign_writers = [("sync", "s1"), ("sync", "s2"), ("async", "a1"), ("async", "a2")];
        let foreign_writers =
            foreign_writers.map(|(mode, prefix)| (mode, start_writer(&dir, mode, &file, prefix)));
        let store_senders = ["o1", "o2"].map(|prefix| {
            let env = &env;
            scope.spawn(move || send(env, prefix))
        });
        for (mode, writer) in foreign_writers {
            let [stored, refused] = outcome(writer);
            assert!(mode == "sync" || refused.is_empty(), "a writer that retries stores all messages");
            assert_eq!(stored.len() + refused.len(), MESSAGES_EACH);
            println!("{mode}: {} of {MESSAGES_EACH} refused", refused.len());
            assert!(stored.len() >= MESSAGES_EACH / 10, "a writer without retries stores at least a tenth");
            expected.extend(stored.into_iter().map(|text| (text, 1)));
        }
        for (prefix, sender) in ["o1", "o2"].into_iter().zip(store_senders) {
            sender.join().unwrap();
            expected.extend((0..MESSAGES_EACH).map(|n| (format!("{prefix}:{n}"), 1)));
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    assert_eq!(count_texts(&texts(&env)), expected);
    assert_eq!(list_dir(&env.inbox_path("")), [file], "no lock or temporary file remains");
    assert!(env.backups().is_empty(), "no file is treated as damaged");
}

fn send(env: &TestRoot, prefix: &str) {
    let inbox = env.reopen_team().inbox(&agent("bob"));
    for n in 0..MESSAGES_EACH {
        inbox.append(&message(&format!("{prefix}:{n}"))).unwrap();
        sleep_ms(3);
    }
}

/// Reads the inbox through the store without pause until `is_done`. Checks that no message
/// disappears. Returns the number of messages of the last read.
fn read_repeatedly(env: &TestRoot, is_done: &AtomicBool) -> usize {
    let mut last_count = 0;
    while !is_done.load(Ordering::Relaxed) {
        let count = texts(env).len();
        assert!(count >= last_count, "{count} after {last_count}");
        last_count = count;
    }
    last_count
}

fn texts(env: &TestRoot) -> Vec<String> {
    let entries = env.team.inbox(&agent("bob")).read().unwrap();
    entries.into_iter().map(|entry| entry.message.unwrap().text).collect()
}

fn count_texts(texts: &[String]) -> BTreeMap<String, i32> {
    let mut counts = BTreeMap::new();
    texts.iter().for_each(|text| *counts.entry(text.clone()).or_insert(0) += 1);
    counts
}

#[test]
fn the_store_and_a_foreign_program_respect_each_others_locks() {
    let Some(dir) = writers_dir() else { return };
    let env = TestRoot::new();
    let file = env.inbox_path("bob.json");
    overwrite_in_place(&file, "[]");
    let script = "require('proper-lockfile').lockSync(process.argv[1]); \
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); \
        require('proper-lockfile').unlockSync(process.argv[1]);";
    let mut holder = Command::new("node").current_dir(&dir).args(["-e", script]).arg(&file).spawn().unwrap();
    while !env.inbox_path("bob.json.lock").exists() {
        sleep_ms(5);
    }
    let start = Instant::now();
    env.team.inbox(&agent("bob")).append(&message("x")).unwrap();
    assert!(start.elapsed().as_millis() > 1000, "{:?}", start.elapsed());
    assert!(holder.wait().unwrap().success());
    std::fs::create_dir(env.inbox_path("bob.json.lock")).unwrap();
    let [stored, refused] = outcome(start_writer(&dir, "sync", &file, "s"));
    assert_eq!((stored.len(), refused.len()), (0, MESSAGES_EACH), "the foreign program respects the lock");
}

#[test]
fn a_task_list_under_a_foreign_flock_is_changed_after_its_release() {
    let env = TestRoot::new();
    let lock = std::fs::File::open(env.team.tasks().path().join(".lock")).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        let tasks: Tasks = env.reopen_team().tasks();
        let start = Instant::now();
        let creator = scope.spawn(move || tasks.create(NewTask::new("x", &agent("ann"))).unwrap());
        sleep_ms(500);
        lock.unlock().unwrap();
        creator.join().unwrap();
        assert!(start.elapsed().as_millis() >= 500);
    });
}
