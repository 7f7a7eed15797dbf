//! Kills in the middle of a step of a mirror.
//!
//! A failpoint of the store panics there, and the test opens the mirror again. Failpoints need an
//! environment variable, so [`run_again_with_kills`] runs a test in a process of its own.

use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;

const FAILPOINTS_VARIABLE: &str = "TEAMD_FAILPOINTS";

/// The failpoints of the store before and after each change that survives the process.
const FAILPOINTS: [&str; 14] = [
    "store.create",
    "store.replace",
    "store.replaced",
    "store.create-file",
    "store.file-created",
    "store.append",
    "store.appended",
    "store.overwrite",
    "store.append-lines",
    "store.lines-appended",
    "store.remove",
    "store.removed",
    "shadow.written",
    "shadow.exchanged",
];

/// The failpoint at which a step is killed.
#[derive(Debug, Clone)]
pub(crate) struct Kill {
    failpoint: &'static str,
    /// The number of its hit in the step. 1: the first.
    nth: u8,
}

impl Kill {
    /// Chooses a failpoint. `None` if this process has no failpoints.
    pub(crate) fn choose(random: &mut fastrand::Rng) -> Option<Kill> {
        failpoints_directory()?;
        Some(Kill { failpoint: FAILPOINTS[random.usize(..FAILPOINTS.len())], nth: random.u8(1..4) })
    }

    /// Runs a step. `None` if it was killed.
    pub(crate) fn run<T>(self, step: impl FnOnce() -> T) -> Option<T> {
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().display();
        write("hits", "");
        write("armed", &format!("panic {program} {} {}\n", self.failpoint, self.nth));
        let result = catch_unwind(AssertUnwindSafe(step));
        write("armed", "");
        result.map_err(resume_unless_killed).ok()
    }
}

fn resume_unless_killed(panic: Box<dyn std::any::Any + Send>) {
    match panic.downcast_ref::<String>() {
        Some(text) if text.starts_with("failpoint ") => println!("killed: {text}"),
        _ => resume_unwind(panic),
    }
}

fn failpoints_directory() -> Option<PathBuf> {
    std::env::var_os(FAILPOINTS_VARIABLE).map(PathBuf::from)
}

fn write(name: &str, text: &str) {
    let path = failpoints_directory().unwrap().join(name);
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Runs a test of this program again, in a process with failpoints.
pub(crate) fn run_again_with_kills(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).env(FAILPOINTS_VARIABLE, directory.path());
    let output = program.output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
    assert!(stdout.contains("killed: "), "no step was killed");
}
