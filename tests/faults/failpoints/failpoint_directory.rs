//! Writes and reads the failpoint directory: arms failpoints, and reads which failpoints were hit.

use harness::{TaggedProcesses, TestEnv};
use std::collections::BTreeMap;
use std::time::Duration;

/// One hit of a failpoint: the `nth` time that `program` reaches it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failpoint {
    pub(super) program: String,
    pub(super) name: String,
    /// Whether a system call that can fail follows the failpoint.
    pub(super) is_before_call: bool,
    pub(super) nth: usize,
}

/// What happens at an armed failpoint.
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

/// An operation has ended, or waits for something, if nothing is written for this time.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(60);

/// Enables failpoints in all processes that are started in the environment from now on.
pub(super) fn enable(env: &mut TestEnv) {
    let path = env.path("crash").display().to_string();
    env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &path]);
    env.variables.push(("TEAMD_FAILPOINTS".to_owned(), path));
}

/// Starts recording hits, and arms a failpoint if one is given.
pub(super) fn arm(env: &TestEnv, armed: Option<(&Failpoint, FailpointAction)>) {
    let line = armed.map(|(point, action)| {
        format!("{} {} {} {}\n", action.keyword(), point.program, point.name, point.nth)
    });
    // Without the file `hits` no program counts hits or takes an action. So no hit is counted
    // before the new failpoint is armed.
    std::fs::remove_file(env.path("crash/hits")).unwrap_or_default();
    env.write_file("crash/armed", line.unwrap_or_default());
    env.write_file("crash/hits", "");
}

/// Stops recording hits and disarms the failpoint.
pub(super) fn disarm(env: &TestEnv) {
    for name in ["armed", "hits"] {
        std::fs::remove_file(env.path("crash").join(name)).unwrap_or_default();
    }
}

/// Returns the pid of the process that has taken the armed action.
pub(super) fn triggered_pid(env: &TestEnv) -> Option<u32> {
    let hits = env.read("crash/hits");
    hits.lines().find_map(|line| line.strip_prefix("acted ")?.parse().ok())
}

/// Waits until a process has taken the armed action, or until nothing is written any more. Returns
/// the pid of the process.
pub(super) fn wait_for_trigger(env: &TestEnv) -> Option<u32> {
    if triggered_pid(env).is_none() {
        env.wait_until_quiet(SETTLE_TIME);
    }
    triggered_pid(env)
}

/// Waits until the process that took the action has ended.
pub(super) fn wait_for_exit(pid: u32) {
    assert!(TaggedProcesses::single(pid).exit_within(harness::TIMEOUT), "{pid} has not ended");
}

/// Waits until nothing is written any more, and returns all recorded hits.
pub(super) fn recorded_points(env: &TestEnv) -> Vec<Failpoint> {
    env.wait_until_quiet(SETTLE_TIME);
    let (mut counts, mut points) = (BTreeMap::new(), Vec::new());
    for line in env.read("crash/hits").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [program, name, kind, _pid] = fields[..] else { continue };
        let nth = counts.entry((program.to_owned(), name.to_owned())).or_insert(0);
        *nth += 1;
        let (program, name) = (program.to_owned(), name.to_owned());
        points.push(Failpoint { program, name, is_before_call: kind == "call", nth: *nth });
    }
    points
}
