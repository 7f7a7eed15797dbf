//! Claims of a long list, and what of it is looked at for them.

use harness::{House, Mcp};
use notify::event::{AccessKind, EventKind};
use notify::{RecursiveMode, Watcher};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};

/// So many that a look at all of them takes its time.
const MANY: u32 = 600;

/// As programs write a task that are not ours: truncated, in place, without a lock.
fn write(house: &House, id: u32, more: &str) {
    let text = format!(r#"{{"id":"{id}","subject":"part {id}",{more}}}"#);
    let path = house.root().join(format!("tasks/survey/{id}.json"));
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Which the daemon has told of, whose log this is.
fn told(house: &House) -> usize {
    house.events().iter().filter(|event| event["event"] == "task_created").count()
}

/// A team with a long list, and a daemon that knows it.
fn long() -> House {
    let house = House::with_team();
    (1..=MANY).for_each(|id| write(&house, id, r#""status":"pending""#));
    house.until("it has been told", || (told(&house) == MANY as usize).then_some(()));
    assert_eq!(house.json(["status"])["daemon"]["watch"], "events");
    house
}

/// Sees which tasks' files are opened, by whomever.
struct Opened {
    house: std::path::PathBuf,
    names: Receiver<String>,
    _watcher: notify::RecommendedWatcher,
}

impl Opened {
    fn of(house: &House) -> Opened {
        let (tell, names) = channel();
        let saw = move |event: notify::Result<notify::Event>| {
            let event = event.unwrap();
            let is_told = matches!(event.kind, EventKind::Access(AccessKind::Open(_)) | EventKind::Create(_));
            for path in event.paths.iter().filter(|_| is_told) {
                tell.send(path.file_name().unwrap().to_string_lossy().into_owned()).unwrap_or_default();
            }
        };
        let mut watcher = notify::recommended_watcher(saw).unwrap();
        let house = house.root().join("tasks/survey");
        watcher.watch(&house, RecursiveMode::NonRecursive).unwrap();
        Opened { house, names, _watcher: watcher }
    }

    /// Since the last call.
    fn tasks(&self) -> BTreeSet<u32> {
        let last = self.house.join("last");
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

#[test]
fn a_task_that_is_named_is_shown_and_taken_without_a_look_at_any_other() {
    let house = long();
    write(&house, 300, r#""status":"pending","blockedBy":["200"]"#);
    write(&house, 200, r#""status":"completed""#);
    house.until("it has been told", || {
        house.events().iter().any(|event| event["event"] == "task_completed").then_some(())
    });
    let opened = Opened::of(&house);
    let task = house.json(["task", "get", "300"])["task"].clone();
    assert_eq!((&task["available"], &task["open_blockers"]), (&json!(true), &json!([])));
    assert_eq!(opened.tasks(), BTreeSet::from([200, 300]));
    let mut mcp = Mcp::of(&house, &["--team", "survey"]);
    let task = mcp.call("TaskUpdate", &json!({"taskId": "300", "status": "in_progress"})).unwrap();
    assert_eq!(task["task"]["owner"], "team-lead");
    assert_eq!(opened.tasks(), BTreeSet::from([200, 300]));
    mcp.end();
    house.end();
}
