//! Runs the command of `--test` in the worktree of the merge, with a deadline. Its output goes into
//! a log in the state directory.

use super::worktree_error_report::to_report;
use client::short_duration::short_duration;
use protocol::env_filter::is_inherited;
use protocol::error_kind_and_report::ErrorReport;
use protocol::state_file_names::LOGS_DIR;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::StateDir;
use worktree::{CommandEnd, LoggedCommand, MERGE_WORKTREE_VARIABLE};

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
    /// How the test has ended, such as `the test failed (exit 1)`.
    pub(super) reason: String,
    /// The file with all output.
    pub(super) log: PathBuf,
    /// The end of the output.
    pub(super) last_lines: Vec<String>,
}

impl MergeTest<'_> {
    /// Runs the test command, and then ends all processes that the command has started. The output
    /// goes into a log, which replaces the log of the member's previous test.
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
        let directory = state.open_subdir(LOGS_DIR)?.open_subdir("merges")?.open_subdir(team.as_str())?;
        let log = directory.path().join(format!("{}.log", member.file_stem()));
        let argv = ["sh", "-c", self.command].map(str::to_owned);
        let command = LoggedCommand {
            argv: &argv,
            directory: self.worktree,
            variables: std::env::vars_os().filter(|(name, _)| is_passed_to_test(name)).collect(),
            marker: MERGE_WORKTREE_VARIABLE,
            worktree: self.worktree,
            timeout: self.timeout,
            log: &log,
        };
        let reason = match command.run().map_err(|error| to_report(&error))? {
            CommandEnd::Succeeded => return Ok(TestOutcome::Passed),
            CommandEnd::Failed(status) => format!("the test failed ({status})"),
            CommandEnd::TimedOut => {
                format!("the test did not end within {}", short_duration(self.timeout_ms()))
            }
        };
        let last_lines = command.last_lines().map_err(|error| to_report(&error))?;
        Ok(TestOutcome::Failed(TestFailure { reason, log, last_lines }))
    }

    fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Git variables that select a repository would lead the test to another one.
fn is_passed_to_test(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with("GIT_") || is_inherited(&name)
}
