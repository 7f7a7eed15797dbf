//! Runs git as a process, with an argument vector and a deadline.
//!
//! The output goes into files in memory, not into pipes. If a git hook started a background
//! process, that process could keep a pipe open, and reading would never end.
//!
//! Git gets the caller's environment, without variables such as `GIT_DIR` that could make it use
//! another repository (`is_passed_to_git`). Git never prompts, and its messages are in English. Git
//! runs no programs that the repository's configuration names, except after [`Git::with_programs`].

use crate::error::{Error, io_error};
use crate::git_environment::GitEnvironment;
use crate::git_output::{GitOutput, names_unfinished_worktree};
use crate::git_process::{clone_as_stdio, memory_file, read_all, stdin, wait_or_kill};
use crate::git_settings_that_run_programs::{NO_NETWORK_VARIABLES, override_arguments};
use rustix::event::Timespec;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Time limit of a command that reads or changes little.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit of a command that writes a whole working tree, or runs the user's filters and hooks.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// How often git is run at most, while another git process creates a worktree of the repository.
const MAX_RUNS: usize = 40;

/// The pause between two of these runs.
const RUN_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 25_000_000 };

/// Whether git may run programs that the configuration of the repository names, and use the
/// network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramPolicy {
    /// Git runs these programs and uses the network, as it does for the user.
    Run,
    /// Git does neither. `git_settings_that_run_programs` says how this is done.
    Disable,
}

/// Keys and values that override settings in files.
pub(crate) type Overrides = Vec<(OsString, OsString)>;

/// Runs git in one directory or repository.
#[derive(Debug, Clone)]
pub(crate) struct Git<'a> {
    /// The arguments that select the directory or repository: `-C DIR` or `--git-dir=DIR`.
    location_args: Vec<OsString>,
    programs: ProgramPolicy,
    overrides: Overrides,
    environment: &'a GitEnvironment,
}

impl<'a> Git<'a> {
    /// Returns a `Git` for commands in `directory`. The commands run no programs that the
    /// repository's configuration names.
    pub(crate) fn in_directory(directory: &Path, environment: &'a GitEnvironment) -> Git<'a> {
        Git::at(vec!["-C".into(), directory.into()], environment)
    }

    /// Returns a `Git` for commands on the repository whose git directory is `directory`. The
    /// commands run no programs that the repository's configuration names.
    pub(crate) fn with_git_dir(directory: &Path, environment: &'a GitEnvironment) -> Git<'a> {
        let mut git_dir = OsString::from("--git-dir=");
        git_dir.push(directory);
        Git::at(vec![git_dir], environment)
    }

    fn at(location_args: Vec<OsString>, environment: &'a GitEnvironment) -> Git<'a> {
        Git { location_args, programs: ProgramPolicy::Disable, overrides: Vec::new(), environment }
    }

    /// Allows hooks, filters and other programs in the commands of this `Git`. The commands then
    /// run these programs as the user's git does.
    pub(crate) fn with_programs(mut self) -> Git<'a> {
        self.programs = ProgramPolicy::Run;
        self
    }

    /// Returns the same git with `overrides`, which override the settings in configuration files.
    pub(crate) fn with_overrides(mut self, overrides: Overrides) -> Git<'a> {
        self.overrides = overrides;
        self
    }

    /// Runs git and returns its output.
    ///
    /// # Errors
    ///
    /// [`Error::Git`] or [`Error::ProgramMissing`] if git fails; the errors of [`Git::run`].
    pub(crate) fn output_of<S: AsRef<OsStr>>(&self, action: &str, arguments: &[S]) -> Result<Vec<u8>, Error> {
        self.run(action, arguments, b"", READ_TIMEOUT)?.stdout_or_error(action)
    }

    /// Runs git and returns whether it exited with status 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::run`].
    pub(crate) fn succeeds<S: AsRef<OsStr>>(&self, action: &str, arguments: &[S]) -> Result<bool, Error> {
        Ok(self.run(action, arguments, b"", READ_TIMEOUT)?.is_success())
    }

    /// Runs git and returns its output as text, without white space at the end. `None` if git
    /// fails.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::run`].
    pub(crate) fn text_if_success<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
    ) -> Result<Option<String>, Error> {
        let output = self.run(action, arguments, b"", READ_TIMEOUT)?;
        Ok(output.is_success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned()))
    }

    /// Runs git like [`Git::output_of`], and removes the newline at the end of the output. The
    /// output is not split into lines, because a path may contain newlines.
    pub(crate) fn output_line<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
    ) -> Result<OsString, Error> {
        let mut bytes = self.output_of(action, arguments)?;
        bytes.pop_if(|byte| *byte == b'\n');
        Ok(OsString::from_vec(bytes))
    }

    /// Runs git like [`Git::output_line`] and returns text. Invalid UTF-8 is replaced by `U+FFFD`.
    pub(crate) fn output_text<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
    ) -> Result<String, Error> {
        Ok(self.output_line(action, arguments)?.to_string_lossy().into_owned())
    }

    /// Runs git with `input` on standard input and parses its output as a number.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`]; [`Error::Git`] also if the output is not a number.
    pub(crate) fn output_number<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
        input: &[u8],
    ) -> Result<u64, Error> {
        let bytes = self.run(action, arguments, input, READ_TIMEOUT)?.stdout_or_error(action)?;
        let text = String::from_utf8_lossy(&bytes);
        let invalid_number =
            |_| Error::Git { action: action.to_owned(), stderr: format!("not a number: {}", text.trim()) };
        text.trim().parse().map_err(invalid_number)
    }

    /// Runs git until it exits or the time limit has passed.
    ///
    /// # Errors
    ///
    /// [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`]. A failure of git is not an error of
    /// this method: the returned output contains the exit status.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
        input: &[u8],
        timeout: Duration,
    ) -> Result<GitOutput, Error> {
        for _ in 1..MAX_RUNS {
            let output = self.run_once(action, arguments, input, timeout)?;
            if output.is_success() || !output.stderr.lines().any(names_unfinished_worktree) {
                return Ok(output);
            }
            // Git itself writes the file, so there is no event to wait for.
            rustix::event::poll(&mut [], Some(&RUN_INTERVAL)).ok();
        }
        self.run_once(action, arguments, input, timeout)
    }

    fn run_once<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
        input: &[u8],
        timeout: Duration,
    ) -> Result<GitOutput, Error> {
        let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
        let status = self.run_with_files(action, arguments, input, &stdout, &stderr, timeout)?;
        Ok(GitOutput {
            status,
            stdout: read_all(&mut stdout)?,
            stderr: String::from_utf8_lossy(&read_all(&mut stderr)?).into_owned(),
        })
    }

    /// Runs git with `file` as its standard output.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn run_to_file<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
        file: &File,
    ) -> Result<(), Error> {
        let mut stderr = memory_file()?;
        let status = self.run_with_files(action, arguments, b"", file, &stderr, WRITE_TIMEOUT)?;
        let stderr = String::from_utf8_lossy(&read_all(&mut stderr)?).into_owned();
        GitOutput { status, stdout: Vec::new(), stderr }.stdout_or_error(action).map(drop)
    }

    /// Runs git with these files as standard output and standard error.
    fn run_with_files<S: AsRef<OsStr>>(
        &self,
        action: &str,
        arguments: &[S],
        input: &[u8],
        stdout: &File,
        stderr: &File,
        timeout: Duration,
    ) -> Result<ExitStatus, Error> {
        let mut command = self.command();
        command.args(arguments);
        command.stdin(stdin(input)?).stdout(clone_as_stdio(stdout)?).stderr(clone_as_stdio(stderr)?);
        failpoint::hit("git.run");
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NoGit,
            _ => io_error("start", Path::new("git"))(error),
        })?;
        let status = wait_or_kill(child, action, timeout);
        failpoint::hit("git.done");
        status
    }

    /// Returns the git command with its environment and general options, but without the
    /// subcommand.
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.variables().iter().map(|(name, value)| (name, value)));
        // Git must not prompt, must not rewrite an index that a user works with, and must print
        // English messages.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        // Git gets a process group of its own, so that it gets no signals from the terminal.
        command.process_group(0).current_dir("/").args(&self.location_args);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
        if self.programs == ProgramPolicy::Disable {
            command.args(override_arguments()).envs(NO_NETWORK_VARIABLES);
        }
        self.add_overrides(&mut command);
        command
    }

    /// Passes the overrides (settings) to git in the environment variables `GIT_CONFIG_KEY_N` and
    /// `GIT_CONFIG_VALUE_N`. The environment may have such variables already, so N begins at the
    /// next free number. The argument `-c KEY=VALUE` is not used, because a key may contain `=`.
    fn add_overrides(&self, command: &mut Command) {
        let count = self.environment.setting_count();
        for (n, (key, value)) in (count..).zip(&self.overrides) {
            command.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
        }
        if !self.overrides.is_empty() {
            command.env("GIT_CONFIG_COUNT", (count + self.overrides.len()).to_string());
        }
    }
}
