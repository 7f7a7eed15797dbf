//! Programs that are not ours and write the same files, each with the lock that its kind takes. For any test that runs
//! beside them: start one, do something, ask what became of its writes.

use crate::{TestEnv, record_skip};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How a foreign program writes, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterKind {
    /// An inbox: waits for the lock, writes beside and renames. Claude Code from 2.1.158 on.
    RenameUnderLock,
    /// An inbox: gives up on a held lock, truncates and writes in place. Claude Code up to 2.1.139.
    SkipIfLocked,
    /// An inbox: waits for the lock, truncates, writes half, a moment later the rest.
    TruncateUnderLock,
    /// An inbox: as `Manner::RenameUnderLock`, and holds the lock for seconds.
    HoldLock,
    /// A config.json: no lock, what it read a moment ago truncated over what is there. Claude Code up to 2.1.100.
    ConfigWithoutLock,
    /// The directory of a task list: flock on `.lock` alone.
    TasksWithFlock,
}

impl WriterKind {
    /// Program, script and how it is asked.
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

    /// Why it can't be run here; none where it can.
    fn missing_dependency(self) -> Option<&'static str> {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers/node_modules");
        let answers = |program: &str| {
            let mut command = Command::new(program);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|ran| ran.success())
        };
        match self {
            WriterKind::TasksWithFlock => (!answers("python3")).then_some("python3 is not installed"),
            _ if !modules.is_dir() => Some("the node modules are not there: make test brings them"),
            _ => (!answers("node")).then_some("node is not installed"),
        }
    }
}

/// What one of them says of itself, in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterReport {
    /// Texts of messages, numbers of rewrites, or tasks as `ID SUBJECT OWNER`.
    pub stored: Vec<String>,
    /// What it gave up, and knows it.
    pub refused: Vec<String>,
}

/// One that runs; dropped, it is killed.
#[derive(Debug)]
pub struct ForeignWriter(Option<Child>);

impl ForeignWriter {
    /// Starts one on `target`, for `count` writes, or until it is asked what became of them. None where this machine
    /// has not what it needs, which is said, and no excuse where `FOREIGN` is set.
    ///
    /// # Panics
    /// Where it can't be started, or is missing and needed.
    pub fn start(
        env: &TestEnv,
        manner: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
    ) -> Option<ForeignWriter> {
        ForeignWriter::start_with_pause(env, manner, target, prefix, count, None)
    }

    /// The same, with up to so long between two writes; without a word a few milliseconds.
    ///
    /// # Panics
    /// As `Foreign::start`.
    pub fn start_with_pause(
        env: &TestEnv,
        manner: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
        pause: Option<Duration>,
    ) -> Option<ForeignWriter> {
        if let Some(why) = manner.missing_dependency() {
            assert!(std::env::var_os("FOREIGN").is_none(), "{why}");
            record_skip("foreign writers", why);
            return None;
        }
        let count = count.map_or("-".to_owned(), |count| count.to_string());
        let mut command = manner.command(target, prefix, &count);
        command.args(pause.map(|pause| pause.as_millis().to_string()));
        // Known to the environment's audit; what else it finds in its environment is the machine's.
        command.env("TEST_DIR", env.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(ForeignWriter(Some(command.spawn().expect("it starts"))))
    }

    /// Tells it to stop, if it has no number of its own, and waits until it has said what became of its writes.
    ///
    /// # Panics
    /// Where it failed otherwise than by being refused.
    pub fn finish(mut self) -> WriterReport {
        let mut child = self.0.take().expect("it is asked once");
        drop(child.stdin.take());
        let ran = child.wait_with_output().expect("it is ours");
        assert!(ran.status.success(), "{:?}", ran.status);
        let mut said: Value = serde_json::from_slice(&ran.stdout).expect("it says what it did");
        let [stored, refused] = ["stored", "refused"]
            .map(|key| serde_json::from_value(said[key].take()).expect("it is a list of texts"));
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
