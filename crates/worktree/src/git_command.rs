//! Git as a process: an argument vector, a deadline, output as bytes.
//!
//! What it prints goes into files in memory, not into pipes: a hook's child that keeps a pipe open could hold us up.
//! No variable of the caller's that begins with `GIT_` gets through; git asks nobody, and speaks English.

use crate::error::{Error, io_error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// For everything that only looks.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// For what writes a whole tree, with the user's own filters and hooks.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// Between the word and the end by force.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// The environment that git runs in. `Debug` does not show it: there may be secrets in it.
#[derive(Clone)]
pub struct GitEnvironment(Vec<(OsString, OsString)>);

impl std::fmt::Debug for GitEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

impl GitEnvironment {
    /// These variables, without those that would point git elsewhere.
    pub fn from_vars<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> GitEnvironment {
        let all = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        GitEnvironment(all.filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"GIT_")).collect())
    }

    /// Those of this process.
    pub fn from_process() -> GitEnvironment {
        GitEnvironment::from_vars(std::env::vars_os())
    }
}

/// Whether the repository's hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookPolicy {
    /// The user's own, as they would for the user.
    Run,
    /// None: we only look, or put away.
    Disable,
}

/// Git at one place.
#[derive(Debug, Clone)]
pub(crate) struct Git<'a> {
    location_args: Vec<OsString>,
    hooks: HookPolicy,
    environment: &'a GitEnvironment,
}

/// What git printed, and how it ended.
#[derive(Debug)]
pub(crate) struct GitOutput {
    status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    stderr: String,
}

impl<'a> Git<'a> {
    /// In a working directory.
    pub(crate) fn in_directory(directory: &Path, surroundings: &'a GitEnvironment) -> Git<'a> {
        Git {
            location_args: vec!["-C".into(), directory.into()],
            hooks: HookPolicy::Disable,
            environment: surroundings,
        }
    }

    /// With a repository's own directory, whatever is checked out where.
    pub(crate) fn with_git_dir(directory: &Path, surroundings: &'a GitEnvironment) -> Git<'a> {
        let mut at = OsString::from("--git-dir=");
        at.push(directory);
        Git { location_args: vec![at], hooks: HookPolicy::Disable, environment: surroundings }
    }

    /// With the hooks of the repository.
    pub(crate) fn with_hooks(mut self) -> Git<'a> {
        self.hooks = HookPolicy::Run;
        self
    }

    /// What it prints, where it says yes.
    pub(crate) fn output_of<S: AsRef<OsStr>>(&self, verb: &str, arguments: &[S]) -> Result<Vec<u8>, Error> {
        self.run(verb, arguments, b"", READ_TIMEOUT)?.stdout_or_error(verb)
    }

    /// One line of what it prints, where it says yes. A path may have line ends in it.
    pub(crate) fn output_line<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
    ) -> Result<OsString, Error> {
        let mut bytes = self.output_of(verb, arguments)?;
        bytes.pop_if(|byte| *byte == b'\n');
        Ok(OsString::from_vec(bytes))
    }

    /// The same as text.
    pub(crate) fn output_text<S: AsRef<OsStr>>(&self, verb: &str, arguments: &[S]) -> Result<String, Error> {
        Ok(self.output_line(verb, arguments)?.to_string_lossy().into_owned())
    }

    /// A number that it prints.
    pub(crate) fn output_number<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        input: &[u8],
    ) -> Result<u64, Error> {
        let bytes = self.run(verb, arguments, input, READ_TIMEOUT)?.stdout_or_error(verb)?;
        let text = String::from_utf8_lossy(&bytes);
        let no_number =
            |_| Error::Git { action: verb.to_owned(), stderr: format!("no number: {}", text.trim()) };
        text.trim().parse().map_err(no_number)
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`]; a no of git's is in the output.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        input: &[u8],
        patience: Duration,
    ) -> Result<GitOutput, Error> {
        let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
        let status = self.run_with_files(verb, arguments, input, &stdout, &stderr, patience)?;
        Ok(GitOutput {
            status,
            stdout: read_all(&mut stdout)?,
            stderr: String::from_utf8_lossy(&read_all(&mut stderr)?).into_owned(),
        })
    }

    /// What it prints goes into this file.
    pub(crate) fn run_to_file<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        file: &File,
    ) -> Result<(), Error> {
        let mut stderr = memory_file()?;
        let status = self.run_with_files(verb, arguments, b"", file, &stderr, WRITE_TIMEOUT)?;
        let stderr = String::from_utf8_lossy(&read_all(&mut stderr)?).into_owned();
        GitOutput { status, stdout: Vec::new(), stderr }.stdout_or_error(verb).map(drop)
    }

    fn run_with_files<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        input: &[u8],
        stdout: &File,
        stderr: &File,
        patience: Duration,
    ) -> Result<ExitStatus, Error> {
        let mut command = self.command();
        command.args(arguments);
        command.stdin(stdin(input)?).stdout(clone_as_stdio(stdout)?).stderr(clone_as_stdio(stderr)?);
        failpoint::hit("git.run");
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NoGit,
            _ => io_error("start", Path::new("git"))(error),
        })?;
        let ended = wait_or_kill(child, verb, patience);
        failpoint::hit("git.ran");
        ended
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.0.iter().map(|(name, value)| (name, value)));
        // No prompt, no refresh of an index that somebody works with, English words.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        // Beyond the reach of a terminal's signals.
        command.process_group(0).current_dir("/").args(&self.location_args);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
        if self.hooks == HookPolicy::Disable {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command
    }
}

impl GitOutput {
    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// What it printed, where it said yes; else its last words.
    pub(crate) fn stdout_or_error(self, verb: &str) -> Result<Vec<u8>, Error> {
        if self.is_success() { Ok(self.stdout) } else { Err(self.to_error(verb)) }
    }

    /// Its no.
    pub(crate) fn to_error(&self, verb: &str) -> Error {
        let said: Vec<&str> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let said = said[said.len().saturating_sub(3)..].join("; ");
        let said = if said.is_empty() { format!("git ended with {}", self.status) } else { said };
        Error::Git { action: verb.to_owned(), stderr: said }
    }
}

/// Waits for its end, and ends it with all that it started where that takes too long: asked first, since then it
/// takes back what it has half done.
fn wait_or_kill(mut child: Child, verb: &str, patience: Duration) -> Result<ExitStatus, Error> {
    let at = Path::new("git");
    let pid = Pid::from_child(&child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(io_error("watch", at))?;
    if exits_within(&pidfd, patience)? {
        return child.wait().map_err(io_error("wait for", at));
    }
    kill_process_group(pid, Signal::TERM).ok();
    exits_within(&pidfd, TERM_GRACE)?;
    kill_process_group(pid, Signal::KILL).ok();
    child.wait().map_err(io_error("wait for", at))?;
    Err(Error::Timeout { action: verb.to_owned(), timeout: patience })
}

fn exits_within(pidfd: &OwnedFd, patience: Duration) -> Result<bool, Error> {
    let until = Instant::now() + patience;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready.map_err(io_error("wait for", Path::new("git")))? > 0),
        }
    }
}

fn memory_file() -> Result<File, Error> {
    let made =
        memfd_create("git", MemfdFlags::CLOEXEC).map_err(io_error("make a file in", Path::new("memory")))?;
    Ok(made.into())
}

fn stdin(input: &[u8]) -> Result<Stdio, Error> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = memory_file()?;
    let at = Path::new("memory");
    file.write_all(input).and_then(|()| file.rewind()).map_err(io_error("write into", at))?;
    Ok(file.into())
}

fn clone_as_stdio(file: &File) -> Result<Stdio, Error> {
    Ok(file.try_clone().map_err(io_error("share a file in", Path::new("memory")))?.into())
}

fn read_all(file: &mut File) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map_err(io_error("read from", Path::new("memory")))?;
    Ok(bytes)
}

/// The entries of output that ends each with a NUL.
pub(crate) fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// A path as git printed it.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
