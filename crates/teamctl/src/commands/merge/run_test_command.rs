//! Runs the command of `--test` in the worktree of the merge, with a deadline. Its output goes into
//! a log in the state directory.

use super::worktree_error_report::to_report;
use client::short_duration::short_duration;
use protocol::env_filter::is_inherited;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use store::StateDir;
use worktree::{MERGE_WORKTREE_VARIABLE, end_processes_in_merge_worktree};

/// How much of the log's end is shown.
const SHOWN_LINES: usize = 10;
const SHOWN_BYTES: u64 = 4 << 10;

/// The test of a merge.
pub(super) struct MergeTest<'a> {
    pub(super) command: &'a str,
    pub(super) timeout: Duration,
    pub(super) worktree: &'a Path,
}

/// How a test has ended.
pub(super) enum TestOutcome {
    Passed,
    Failed(TestFailure),
}

/// A test that has failed.
#[derive(Debug, Serialize)]
pub(super) struct TestFailure {
    /// How the test has ended, such as `the test failed (exit status 1)`.
    pub(super) reason: String,
    /// The file with all output.
    pub(super) log: PathBuf,
    /// The end of the output.
    pub(super) last_lines: Vec<String>,
}

impl MergeTest<'_> {
    /// Runs the test. Ends all processes that it has started. The log of the member's last test is
    /// replaced.
    ///
    /// # Errors
    ///
    /// `Io` if the log cannot be written, or if the command cannot be started or ended.
    pub(super) fn run(
        &self,
        state: &StateDir,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<TestOutcome, ErrorReport> {
        let directory = state.open_subdir("logs")?.open_subdir("merges")?.open_subdir(team.as_str())?;
        let log = directory.path().join(format!("{}.log", member.file_stem()));
        let failed = |error: io::Error| ErrorReport::from_io("run the test with the log", &log, &error);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&log).map_err(failed)?;
        let mut child = self.start(&file).map_err(failed)?;
        let has_ended = self.wait(&child).map_err(failed);
        end_processes_in_merge_worktree(self.worktree).map_err(|error| to_report(&error))?;
        let reason = match (child.wait().map_err(failed)?, has_ended?) {
            (_, false) => format!("the test did not end within {}", short_duration(self.timeout_ms())),
            (status, true) if status.success() => return Ok(TestOutcome::Passed),
            (status, true) => format!("the test failed ({})", status_text(status)),
        };
        let last_lines = last_lines(&mut file).map_err(failed)?;
        Ok(TestOutcome::Failed(TestFailure { reason, log, last_lines }))
    }

    fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    fn start(&self, log: &File) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.args(["-c", self.command]).current_dir(self.worktree);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        // Git variables that select a repository would lead the test to another one.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("GIT_") && !is_inherited(&text) {
                command.env_remove(&name);
            }
        }
        command.env(MERGE_WORKTREE_VARIABLE, self.worktree).spawn()
    }

    /// Waits for the end of the command. Returns false if the time is over.
    fn wait(&self, child: &Child) -> io::Result<bool> {
        // A process that has exited already has no handle.
        match platform::system().open_process(child.id())? {
            Some(handle) => handle.exits_within(self.timeout),
            None => Ok(true),
        }
    }
}

/// `exit status 1` or `signal 9`.
fn status_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The last lines of a file.
fn last_lines(file: &mut File) -> io::Result<Vec<String>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| (*line).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn end_of_a_long_log_is_shown() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(last_lines(&mut file).unwrap().is_empty());
        (1..=2000).for_each(|n| writeln!(file, "line {n}").unwrap());
        let lines = last_lines(&mut file).unwrap();
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 1991", "line 2000"));
    }
}
