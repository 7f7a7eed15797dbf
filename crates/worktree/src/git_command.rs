//! Runs git as a process, with an argument vector and a deadline.
//!
//! The output goes into files in memory, not into pipes. If a git hook started a background
//! process, that process could keep a pipe open, and reading would never end.
//!
//! Git gets the caller's environment, but not every variable that begins with `GIT_`: only
//! variables that set an option are passed, and no variable that selects a repository
//! ([`is_passed_to_git`]). Git never prompts, and its messages are in English. Git runs no programs
//! that the repository's configuration names, except after [`Git::with_programs`].

use crate::error::{Error, io_error};
use crate::git_settings_that_run_programs::{NO_NETWORK_VARIABLES, override_arguments};
use protocol::env_filter::is_passed_to_git;
use rustix::event::Timespec;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time limit of a command that reads or changes little.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of a command that writes a whole working tree, or runs the user's filters and hooks.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// The variables that name the author and committer of new commits.
const IDENTITY_VARIABLES: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// How many lines of git's standard error an error has, from its beginning and from its end.
const FIRST_LINES: usize = 5;
const LAST_LINES: usize = 3;

/// How often git is run at most, while another git process creates a worktree of the repository.
const MAX_RUNS: usize = 40;
/// The pause between two of these runs.
const RUN_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 25_000_000 };

/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// The environment variables with which git is started. `Debug` shows only their number, because
/// they may contain secrets.
#[derive(Clone)]
pub struct GitEnvironment(Vec<(OsString, OsString)>);

impl std::fmt::Debug for GitEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

impl GitEnvironment {
    /// Makes an environment from those of `variables` that are passed to git (docs/environment.md).
    /// Of the variables that begin with `GIT_`, only those that set an option are passed.
    /// `GIT_DIR`, for example, is not passed.
    pub fn from_vars<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> GitEnvironment {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        GitEnvironment(variables.filter(|(name, _)| is_passed_to_git(&name.to_string_lossy())).collect())
    }

    /// The names and values of the variables.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.0
    }

    /// The number of git settings that this environment already has in `GIT_CONFIG_KEY_N`: the
    /// value of `GIT_CONFIG_COUNT`, or 0. The next setting gets this number.
    fn setting_count(&self) -> usize {
        let count = self.0.iter().rev().find(|(name, _)| name == "GIT_CONFIG_COUNT");
        count.and_then(|(_, value)| value.to_str()?.parse().ok()).unwrap_or(0)
    }

    /// Takes the variables of this process, as [`GitEnvironment::from_vars`] does.
    pub fn from_process() -> GitEnvironment {
        GitEnvironment::from_vars(std::env::vars_os())
    }

    /// Like [`GitEnvironment::from_process`], but also passes the variables that name the author
    /// and committer of new commits.
    pub fn from_process_with_identity() -> GitEnvironment {
        let mut environment = GitEnvironment::from_process();
        let identity = IDENTITY_VARIABLES.iter().map(|name| (OsString::from(name), std::env::var_os(name)));
        environment.0.extend(identity.filter_map(|(name, value)| Some((name, value?))));
        environment
    }

    /// Returns this environment with one more variable.
    pub(crate) fn with_variable(&self, name: &str, value: &OsStr) -> GitEnvironment {
        let variable = (OsString::from(name), value.to_owned());
        GitEnvironment(self.0.iter().cloned().chain([variable]).collect())
    }

    /// Returns this environment with the `variables` of a caller, such as a client of the daemon.
    /// The caller's variables replace variables of the same names, and all `GIT_` variables of this
    /// environment. If the caller has no variable that is passed to git, this environment is
    /// returned unchanged.
    #[must_use]
    pub fn with_caller(self, variables: &BTreeMap<String, String>) -> GitEnvironment {
        let is_replaced = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("GIT_") || variables.contains_key(&*name)
        };
        let caller = GitEnvironment::from_vars(variables.clone()).0;
        let variables = self.0.into_iter().filter(|(name, _)| caller.is_empty() || !is_replaced(name));
        GitEnvironment(variables.chain(caller.iter().cloned()).collect())
    }
}

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

/// The output and exit status of git.
#[derive(Debug)]
pub(crate) struct GitOutput {
    status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    stderr: String,
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
        command.env_clear().envs(self.environment.0.iter().map(|(name, value)| (name, value)));
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

    /// Passes the overrides to git in the variables `GIT_CONFIG_KEY_N` and `GIT_CONFIG_VALUE_N`. N
    /// continues the numbers that the environment already has. The argument `-c KEY=VALUE` is not
    /// used, because a key may contain `=`.
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

impl GitOutput {
    /// Whether git exited with status 0.
    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Returns the standard output if git exited with status 0 or 1. Some commands exit with status
    /// 1 if they have found nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Git`] if git exited with another status.
    pub(crate) fn stdout_if_code_0_or_1(self, action: &str) -> Result<Vec<u8>, Error> {
        if self.status.code() == Some(1) { Ok(self.stdout) } else { self.stdout_or_error(action) }
    }

    /// Returns the standard output if git succeeded.
    ///
    /// # Errors
    ///
    /// [`Error::Git`] if git failed.
    pub(crate) fn stdout_or_error(self, action: &str) -> Result<Vec<u8>, Error> {
        if self.is_success() { Ok(self.stdout) } else { Err(self.to_error(action)) }
    }

    /// Returns the error for a failure of git. If git did not find a program, the error names this
    /// program. Otherwise the error contains the lines of standard error ([`error_lines`]), or
    /// git's exit status if there are none.
    pub(crate) fn to_error(&self, action: &str) -> Error {
        if let Some(program) = self.stderr.lines().find_map(missing_program) {
            return Error::ProgramMissing { action: action.to_owned(), program: program.to_owned() };
        }
        let message = error_lines(&self.stderr);
        let stderr = if message.is_empty() { format!("git failed: {}", self.status) } else { message };
        Error::Git { action: action.to_owned(), stderr }
    }
}

/// Whether this error line of git means that another git process is creating a worktree at the
/// moment: that process has created the file `commondir`, but has not yet written its content.
fn names_unfinished_worktree(line: &str) -> bool {
    line.starts_with("fatal: failed to read ") && line.contains("/commondir: ")
}

/// Joins the lines of git's standard error, without hints. Git prints the cause first, the
/// consequence last, and any number of file names in between. So of a long text the first and the
/// last lines are used.
fn error_lines(stderr: &str) -> String {
    let is_shown = |line: &&str| !line.trim().is_empty() && !line.starts_with("hint:");
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).filter(is_shown).collect();
    let Some(left_out) = lines.len().checked_sub(FIRST_LINES + LAST_LINES).filter(|n| *n > 0) else {
        return lines.join("; ");
    };
    let (first, last) = (&lines[..FIRST_LINES], &lines[lines.len() - LAST_LINES..]);
    format!("{}; … {left_out} lines …; {}", first.join("; "), last.join("; "))
}

/// If `line` is a shell's message that it did not find a program, returns the program. Such
/// messages are `git-lfs clean: 1: git-lfs: not found` and `…: git-lfs: command not found`.
fn missing_program(line: &str) -> Option<&str> {
    let start = line.strip_suffix(": command not found").or_else(|| line.strip_suffix(": not found"))?;
    start.rsplit_once(": ").map(|(_, program)| program)
}

/// Waits until git exits. After `timeout`, ends git and all processes of its process group.
///
/// SIGTERM is sent first, so that git can remove unfinished files. SIGKILL follows after
/// [`TERM_GRACE`].
fn wait_or_kill(mut child: Child, action: &str, timeout: Duration) -> Result<ExitStatus, Error> {
    let program = Path::new("git");
    let pid = Pid::from_child(&child);
    let handle = platform::system().open_process(child.id()).map_err(io_error("watch", program))?;
    // A process that has exited already has no handle.
    let exits_within = |timeout| handle.as_ref().map_or(Ok(true), |handle| handle.exits_within(timeout));
    if exits_within(timeout).map_err(io_error("wait for", program))? {
        return child.wait().map_err(io_error("wait for", program));
    }
    kill_process_group(pid, Signal::TERM).ok();
    exits_within(TERM_GRACE).map_err(io_error("wait for", program))?;
    kill_process_group(pid, Signal::KILL).ok();
    child.wait().map_err(io_error("wait for", program))?;
    Err(Error::Timeout { action: action.to_owned(), timeout })
}

/// Creates a file without a name.
fn memory_file() -> Result<File, Error> {
    platform::system().unnamed_file().map_err(io_error("create a file in", Path::new("memory")))
}

/// Returns a standard input from which git reads `input`.
fn stdin(input: &[u8]) -> Result<Stdio, Error> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = memory_file()?;
    let memory = Path::new("memory");
    file.write_all(input).and_then(|()| file.rewind()).map_err(io_error("write into", memory))?;
    Ok(file.into())
}

/// Returns a second descriptor of `file` for a child process.
fn clone_as_stdio(file: &File) -> Result<Stdio, Error> {
    Ok(file.try_clone().map_err(io_error("share a file in", Path::new("memory")))?.into())
}

/// Reads a file from its beginning to its end.
fn read_all(file: &mut File) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let result = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    result.map_err(io_error("read from", Path::new("memory")))?;
    Ok(bytes)
}

/// Splits output into its entries. Each ends with a NUL.
pub(crate) fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// Returns the path that git printed.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(os_string(bytes))
}

/// Returns the text that git printed.
pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_first_and_last_lines_without_hints() {
        assert_eq!(error_lines("error: a\n\n  b\nhint: c\nfatal: d\n"), "error: a;   b; fatal: d");
        let long: String = (1..=20).map(|n| format!("{n}\n")).collect();
        assert_eq!(error_lines(&long), "1; 2; 3; 4; 5; … 12 lines …; 18; 19; 20");
    }

    #[test]
    fn missing_program_is_read_from_the_message_of_the_shell() {
        for line in ["git-lfs smudge -- a: 1: git-lfs: not found", "x: line 1: git-lfs: command not found"] {
            assert_eq!(missing_program(line), Some("git-lfs"));
        }
        for line in ["fatal: a: smudge filter lfs failed", "error: repository not found", "Not found: x"] {
            assert_eq!(missing_program(line), None);
        }
    }

    #[test]
    fn callers_settings_replace_all_of_the_daemons() {
        let daemon = || GitEnvironment::from_vars([("PATH", "/d"), ("LANG", "C"), ("GIT_CONFIG_COUNT", "1")]);
        let pairs = |environment: GitEnvironment| {
            let text = |text: OsString| text.into_string().unwrap();
            environment.0.into_iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
        };
        let caller = [("PATH", "/c"), ("GIT_CONFIG_GLOBAL", "g"), ("GIT_DIR", "x")];
        let caller = caller.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let replaced: Vec<String> = pairs(daemon().with_caller(&caller));
        assert_eq!(replaced, ["LANG=C", "GIT_CONFIG_GLOBAL=g", "PATH=/c"]);
        let unchanged: Vec<String> = pairs(daemon().with_caller(&BTreeMap::new()));
        assert_eq!(unchanged, ["PATH=/d", "LANG=C", "GIT_CONFIG_COUNT=1"]);
    }
}
