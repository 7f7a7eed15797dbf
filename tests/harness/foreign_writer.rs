//! Foreign writers: programs that write the same files as teamd and lock them as other tools do. A
//! test starts one, does its own work, and then asks which writes have succeeded.

use crate::{TestEnv, record_skip};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What a foreign writer writes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterKind {
    /// An inbox: waits for the lock, writes a temporary file and renames it. Claude Code from
    /// 2.1.158 on.
    RenameUnderLock,
    /// An inbox: does not write if the lock is held. Otherwise truncates the file and writes in
    /// place. Claude Code up to 2.1.139.
    SkipIfLocked,
    /// An inbox: waits for the lock, truncates the file and writes in place, in two halves with a
    /// short pause between them.
    TruncateUnderLock,
    /// An inbox: as [`WriterKind::RenameUnderLock`], but holds the lock for 2.5 s.
    HoldLock,
    /// A config.json: takes no lock, truncates the file and writes back the content that it has
    /// read a moment before. Claude Code up to 2.1.100.
    ConfigWithoutLock,
    /// The directory of a task list: takes only the flock on `.lock`.
    TasksWithFlock,
}

impl WriterKind {
    /// The command line of the writer.
    fn command(self, target: &Path, prefix: &str, count: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers");
        let (program, script, mode) = match self {
            WriterKind::RenameUnderLock => ("node", "inbox_writer.js", Some("async")),
            WriterKind::SkipIfLocked => ("node", "inbox_writer.js", Some("sync")),
            WriterKind::TruncateUnderLock => ("node", "inbox_writer.js", Some("truncating")),
            WriterKind::HoldLock => ("node", "inbox_writer.js", Some("slow")),
            WriterKind::ConfigWithoutLock => ("node", "config_rewriter.js", None),
            WriterKind::TasksWithFlock => ("python3", "task_writer.py", None),
        };
        let mut command = Command::new(program);
        command.arg(scripts.join(script)).args(mode).arg(target);
        command.args((self != WriterKind::ConfigWithoutLock).then_some(prefix)).arg(count);
        command
    }

    /// The reason why this writer can't run on this machine. `None` if it can.
    fn missing_dependency(self) -> Option<&'static str> {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers/node_modules");
        let is_installed = |program: &str| {
            let mut command = Command::new(program);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        match self {
            WriterKind::TasksWithFlock => (!is_installed("python3")).then_some("python3 is not installed"),
            _ if !modules.is_dir() => Some("the node modules are not installed: run make test"),
            _ => (!is_installed("node")).then_some("node is not installed"),
        }
    }
}

/// What a writer reports when it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterReport {
    /// What the writer has stored: the texts of messages, the numbers of rewrites, or the tasks as
    /// `ID SUBJECT OWNER`.
    pub stored: Vec<String>,
    /// What the writer did not store, by its own report: because of a lock that was held, or a file
    /// that it could not read.
    pub refused: Vec<String>,
}

/// A running writer. Dropping it kills the program.
#[derive(Debug)]
pub struct ForeignWriter(Option<Child>);

impl ForeignWriter {
    /// Starts a writer that writes `count` times to `target`, or without `count` until
    /// [`ForeignWriter::finish`]. What it writes is numbered after `prefix`. `None` if this machine
    /// lacks what the writer needs; this is recorded as a skip.
    ///
    /// # Panics
    /// If the writer can't be started, or if this machine lacks what it needs and the environment
    /// variable `FOREIGN` is set.
    pub fn start(
        env: &TestEnv,
        kind: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
    ) -> Option<ForeignWriter> {
        ForeignWriter::start_with_pause(env, kind, target, prefix, count, None)
    }

    /// As [`ForeignWriter::start`], with a random pause of up to `pause` between two writes. The
    /// default is 6 ms, and 50 ms for a config.json.
    ///
    /// # Panics
    /// As [`ForeignWriter::start`].
    pub fn start_with_pause(
        env: &TestEnv,
        kind: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
        pause: Option<Duration>,
    ) -> Option<ForeignWriter> {
        if let Some(reason) = kind.missing_dependency() {
            assert!(std::env::var_os("FOREIGN").is_none(), "{reason}");
            record_skip("foreign writers", reason);
            return None;
        }
        let count = count.map_or("-".to_owned(), |count| count.to_string());
        let mut command = kind.command(target, prefix, &count);
        command.args(pause.map(|pause| pause.as_millis().to_string()));
        // The leak check finds the process by `TEST_DIR`. The other variables are those of this
        // process.
        command.env("TEST_DIR", env.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(ForeignWriter(Some(command.spawn().expect("the writer starts"))))
    }

    /// Stops a writer that has no `count`. Waits until the writer ends, and returns its report.
    ///
    /// # Panics
    /// If the writer has failed.
    pub fn finish(mut self) -> WriterReport {
        let mut child = self.0.take().expect("the writer runs");
        drop(child.stdin.take());
        let output = child.wait_with_output().expect("the writer has exited");
        assert!(output.status.success(), "{:?}", output.status);
        let mut report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        let [stored, refused] = ["stored", "refused"]
            .map(|key| serde_json::from_value(report[key].take()).expect("the report has lists of strings"));
        WriterReport { stored, refused }
    }
}

impl Drop for ForeignWriter {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
