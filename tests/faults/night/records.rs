//! What the programs of the members recorded about the tasks.

use super::team::{PLANNER, TASKS};
use harness::TestEnv;
use serde_json::Value;

/// Task and number of attempts that kills, failures or the interrupt ended before the task was done.
/// Each other task had none.
const CUT_OFF: [(&str, usize); 10] = [
    // The interrupted turn.
    ("b1", 1),
    // The two tries that `retries` allows.
    ("bad", 2),
    // The crashes.
    ("f1", 1),
    ("h1", 1),
    // The end of the tmux server.
    ("c2", 1),
    ("h2", 1),
    ("m1", 1),
    // The end of the tmux server, and the reboot.
    ("a3", 2),
    ("g2", 2),
    ("w1", 2),
];

/// How often the step `begin` or `end` of a task was recorded.
fn count(env: &TestEnv, step: &str, key: &str) -> usize {
    env.read("out/log").lines().filter(|line| *line == format!("{step} {key}")).count()
}

pub(super) fn is_done(env: &TestEnv, key: &str) -> bool {
    count(env, "end", key) > 0
}

/// Waits until the tasks are recorded as done, and are completed. A kill between the two would repeat a task.
pub(super) fn wait_until_done(env: &TestEnv, keys: &[&str]) {
    for key in keys {
        env.wait_until(&format!("{key} is done"), || is_done(env, key).then_some(()));
        env.wait_until(&format!("{key} is completed"), || {
            (task(env, key)["status"] == "completed").then_some(())
        });
    }
}

/// The task of this key in `task list`.
pub(super) fn task(env: &TestEnv, key: &str) -> Value {
    let list = env.json(["task", "list"])["tasks"].clone();
    let task = list.as_array().unwrap().iter().find(|task| task["metadata"]["key"] == key);
    task.unwrap_or_else(|| panic!("{key}: {list}")).clone()
}

/// The keys of all tasks except that of the planner, whose program records nothing here.
pub(super) fn recorded_keys() -> impl Iterator<Item = &'static str> {
    TASKS.iter().filter(|(_, owner, _)| *owner != PLANNER).map(|(key, ..)| *key)
}

/// Checks that each task of the first night was done once, and was begun once more for each attempt that
/// was cut off.
pub(super) fn assert_tasks_done_once(env: &TestEnv) {
    for key in recorded_keys() {
        let cut_off = CUT_OFF.iter().find(|(cut, _)| *cut == key).map_or(0, |(_, times)| *times);
        let ends = usize::from(!["bad", "after-bad"].contains(&key));
        let found = (count(env, "begin", key), count(env, "end", key));
        assert_eq!(found, (ends + cut_off, ends), "{key}: {}", env.read("out/log"));
    }
}

/// Checks that each task of a night without faults was begun and done once.
pub(super) fn assert_tasks_undisturbed(env: &TestEnv) {
    for key in recorded_keys() {
        let found = (count(env, "begin", key), count(env, "end", key));
        assert_eq!(found, (1, 1), "{key}: {}", env.read("out/log"));
    }
}
