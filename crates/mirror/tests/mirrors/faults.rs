//! Faults in the middle of a step of a mirror: the process is killed, or a write fails as on a full
//! disk.
//!
//! A kill is a panic at a failpoint of the store, after which the test opens the mirror again. A panic
//! unwinds, so unlike a real kill it runs destructors. Failpoints need an environment variable, so
//! [`run_again_with_faults`] runs a test in a process of its own.

use protocol::error_kind_and_report::ErrorReport;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;

const FAILPOINTS_VARIABLE: &str = "TEAMD_FAILPOINTS";

/// The failpoints of the store before and after the changes that a mirror makes and that survive the
/// process. Few steps create or remove a file, so these failpoints are chosen more often.
pub(crate) const FAILPOINTS: [&str; 12] = [
    "store.create",
    "store.replace",
    "store.replaced",
    "store.create-file",
    "store.create-file",
    "store.create-file",
    "store.append-lines",
    "store.lines-appended",
    "store.remove",
    "store.removed",
    "store.removed",
    "store.removed",
];

/// A fault at a failpoint.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The action of the failpoint: `panic`, or `error`, which fails a write.
    action: &'static str,
    failpoint: &'static str,
    /// The number of its hit in the step. 1: the first.
    nth: u8,
}

/// How a step ended in which a fault was possible.
pub(crate) enum StepEnd<T> {
    Done(T),
    Failed,
    Killed,
}

impl Fault {
    /// Chooses a fault. `None` if this process has no failpoints.
    pub(crate) fn choose(random: &mut fastrand::Rng) -> Option<Fault> {
        failpoints_directory()?;
        let action = if random.u8(..3) == 0 { "error" } else { "panic" };
        let failpoint = FAILPOINTS[random.usize(..FAILPOINTS.len())];
        Some(Fault { action, failpoint, nth: random.u8(1..3) })
    }

    /// Runs a step with the fault.
    pub(crate) fn run<T>(self, step: impl FnOnce() -> Result<T, ErrorReport>) -> StepEnd<T> {
        let Fault { action, failpoint, nth } = self;
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().display();
        write("hits", "");
        write("armed", &format!("{action} {program} {failpoint} {nth}\n"));
        let result = catch_unwind(AssertUnwindSafe(step));
        write("armed", "");
        match result {
            Ok(Ok(value)) => StepEnd::Done(value),
            Ok(Err(error)) => {
                println!("failed: {failpoint}: {}", error.message);
                StepEnd::Failed
            }
            Err(panic) => {
                resume_unless_killed(panic);
                println!("killed: {failpoint}");
                StepEnd::Killed
            }
        }
    }
}

fn resume_unless_killed(panic: Box<dyn std::any::Any + Send>) {
    if !panic.downcast_ref::<String>().is_some_and(|text| text.starts_with("failpoint ")) {
        resume_unwind(panic);
    }
}

fn failpoints_directory() -> Option<PathBuf> {
    std::env::var_os(FAILPOINTS_VARIABLE).map(PathBuf::from)
}

fn write(name: &str, text: &str) {
    let path = failpoints_directory().unwrap().join(name);
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Runs a test of this program again, in a process with failpoints. Returns the failpoints at which a
/// step was killed.
pub(crate) fn run_again_with_faults(test: &str) -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).env(FAILPOINTS_VARIABLE, directory.path());
    let output = program.output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
    assert!(stdout.contains("failed: store."), "no write failed");
    stdout.lines().filter_map(|line| line.strip_prefix("killed: ")).map(str::to_owned).collect()
}
