//! Where orders are given and what was passed is read: the directory that the crash points of a debug build look at.

use harness::{TaggedProcesses, TestEnv};
use std::collections::BTreeMap;
use std::time::Duration;

/// A crash point, and the how manieth passing of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failpoint {
    pub(super) program: String,
    pub(super) name: String,
    /// It stands ahead of a call that may fail.
    pub(super) call: bool,
    pub(super) nth: usize,
}

/// What is done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailpointAction {
    Kill,
    Error,
    Pause,
    Panic,
}

impl FailpointAction {
    fn keyword(self) -> &'static str {
        match self {
            FailpointAction::Kill => "kill",
            FailpointAction::Error => "error",
            FailpointAction::Pause => "pause",
            FailpointAction::Panic => "panic",
        }
    }
}

/// Nothing is written for so long: what was begun is over, or waits for somebody.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(60);

/// Every process of the environment that is started from now on looks there.
pub(super) fn enable(env: &mut TestEnv) {
    let path = env.path("crash").display().to_string();
    env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &path]);
    env.variables.push(("TEAMD_FAILPOINTS".to_owned(), path));
}

/// From now on what is passed is written down, and the order holds.
pub(super) fn arm(env: &TestEnv, order: Option<(&Failpoint, FailpointAction)>) {
    let line = order.map(|(at, deed)| format!("{} {} {} {}\n", deed.keyword(), at.program, at.name, at.nth));
    // Without the one nothing is counted, and nobody obeys: what is passed in between is of no order.
    std::fs::remove_file(env.path("crash/hits")).unwrap_or_default();
    env.write_file("crash/armed", line.unwrap_or_default());
    env.write_file("crash/hits", "");
}

/// No more.
pub(super) fn disarm(env: &TestEnv) {
    for name in ["armed", "hits"] {
        std::fs::remove_file(env.path("crash").join(name)).unwrap_or_default();
    }
}

/// Who did as was ordered.
pub(super) fn triggered_pid(env: &TestEnv) -> Option<u32> {
    let passed = env.read("crash/hits");
    passed.lines().find_map(|line| line.strip_prefix("acted ")?.parse().ok())
}

/// Waits until somebody has, or nothing is to come any more; gives who has.
pub(super) fn wait_for_trigger(env: &TestEnv) -> Option<u32> {
    if triggered_pid(env).is_none() {
        env.wait_until_quiet(SETTLE_TIME);
    }
    triggered_pid(env)
}

/// Waits for the end of whoever has.
pub(super) fn wait_for_exit(pid: u32) {
    assert!(TaggedProcesses::single(pid).exit_within(Duration::from_secs(10)), "{pid} did not end of it");
}

/// All that was passed, each with its number.
pub(super) fn recorded_points(env: &TestEnv) -> Vec<Failpoint> {
    env.wait_until_quiet(SETTLE_TIME);
    let (mut times, mut points) = (BTreeMap::new(), Vec::new());
    for line in env.read("crash/hits").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [program, name, kind, _pid] = words[..] else { continue };
        let nth = times.entry((program.to_owned(), name.to_owned())).or_insert(0);
        *nth += 1;
        let (program, name) = (program.to_owned(), name.to_owned());
        points.push(Failpoint { program, name, call: kind == "call", nth: *nth });
    }
    points
}
