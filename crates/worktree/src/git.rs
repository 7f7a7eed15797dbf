//! Git as a process: an argument vector, a deadline, output as bytes.
//!
//! What it prints goes into files in memory, not into pipes: a hook's child that keeps a pipe open could hold us up.
//! No variable of the caller's that begins with `GIT_` gets through; git asks nobody, and speaks English.

use crate::error::{Error, io};
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
pub(crate) const LOOK: Duration = Duration::from_secs(120);
/// For what writes a whole tree, with the user's own filters and hooks.
pub(crate) const WRITE: Duration = Duration::from_secs(600);

/// Between the word and the end by force.
const GRACE: Duration = Duration::from_secs(5);

/// The environment that git runs in. `Debug` does not show it: there may be secrets in it.
#[derive(Clone)]
pub struct Surroundings(Vec<(OsString, OsString)>);

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

impl Surroundings {
    /// These variables, without those that would point git elsewhere.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Surroundings {
        let all = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Surroundings(all.filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"GIT_")).collect())
    }

    /// Those of this process.
    pub fn own() -> Surroundings {
        Surroundings::of(std::env::vars_os())
    }
}

/// Whether the repository's hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// The user's own, as they would for the user.
    Theirs,
    /// None: we only look, or put away.
    None,
}

/// Git at one place.
#[derive(Debug, Clone)]
pub(crate) struct Git<'a> {
    at: Vec<OsString>,
    hooks: Hooks,
    surroundings: &'a Surroundings,
}

/// What git printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    stderr: String,
}

impl<'a> Git<'a> {
    /// In a working directory.
    pub(crate) fn within(directory: &Path, surroundings: &'a Surroundings) -> Git<'a> {
        Git { at: vec!["-C".into(), directory.into()], hooks: Hooks::None, surroundings }
    }

    /// With a repository's own directory, whatever is checked out where.
    pub(crate) fn of_repository(directory: &Path, surroundings: &'a Surroundings) -> Git<'a> {
        let mut at = OsString::from("--git-dir=");
        at.push(directory);
        Git { at: vec![at], hooks: Hooks::None, surroundings }
    }

    /// With the hooks of the repository.
    pub(crate) fn hooked(mut self) -> Git<'a> {
        self.hooks = Hooks::Theirs;
        self
    }

    /// What it prints, where it says yes.
    pub(crate) fn read<S: AsRef<OsStr>>(&self, verb: &str, arguments: &[S]) -> Result<Vec<u8>, Error> {
        self.run(verb, arguments, b"", LOOK)?.yes(verb)
    }

    /// One line of what it prints, where it says yes. A path may have line ends in it.
    pub(crate) fn line<S: AsRef<OsStr>>(&self, verb: &str, arguments: &[S]) -> Result<OsString, Error> {
        let mut bytes = self.read(verb, arguments)?;
        bytes.pop_if(|byte| *byte == b'\n');
        Ok(OsString::from_vec(bytes))
    }

    /// The same as text.
    pub(crate) fn word<S: AsRef<OsStr>>(&self, verb: &str, arguments: &[S]) -> Result<String, Error> {
        Ok(self.line(verb, arguments)?.to_string_lossy().into_owned())
    }

    /// A number that it prints.
    pub(crate) fn count<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        input: &[u8],
    ) -> Result<u64, Error> {
        let bytes = self.run(verb, arguments, input, LOOK)?.yes(verb)?;
        let text = String::from_utf8_lossy(&bytes);
        let no_number = |_| Error::Git { verb: verb.to_owned(), said: format!("no number: {}", text.trim()) };
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
    ) -> Result<Output, Error> {
        let (mut stdout, mut stderr) = (memory()?, memory()?);
        let status = self.into(verb, arguments, input, &stdout, &stderr, patience)?;
        Ok(Output {
            status,
            stdout: whole(&mut stdout)?,
            stderr: String::from_utf8_lossy(&whole(&mut stderr)?).into_owned(),
        })
    }

    /// What it prints goes into this file.
    pub(crate) fn write<S: AsRef<OsStr>>(
        &self,
        verb: &str,
        arguments: &[S],
        file: &File,
    ) -> Result<(), Error> {
        let mut stderr = memory()?;
        let status = self.into(verb, arguments, b"", file, &stderr, WRITE)?;
        let stderr = String::from_utf8_lossy(&whole(&mut stderr)?).into_owned();
        Output { status, stdout: Vec::new(), stderr }.yes(verb).map(drop)
    }

    fn into<S: AsRef<OsStr>>(
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
        command.stdin(stdin(input)?).stdout(shared(stdout)?).stderr(shared(stderr)?);
        failpoint::hit("git.run");
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NoGit,
            _ => io("start", Path::new("git"))(error),
        })?;
        let ended = ended(child, verb, patience);
        failpoint::hit("git.ran");
        ended
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.surroundings.0.iter().map(|(name, value)| (name, value)));
        // No prompt, no refresh of an index that somebody works with, English words.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        // Beyond the reach of a terminal's signals.
        command.process_group(0).current_dir("/").args(&self.at);
        command.args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
        if self.hooks == Hooks::None {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command
    }
}

impl Output {
    pub(crate) fn is_yes(&self) -> bool {
        self.status.success()
    }

    /// What it printed, where it said yes; else its last words.
    pub(crate) fn yes(self, verb: &str) -> Result<Vec<u8>, Error> {
        if self.is_yes() { Ok(self.stdout) } else { Err(self.no(verb)) }
    }

    /// Its no.
    pub(crate) fn no(&self, verb: &str) -> Error {
        let said: Vec<&str> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let said = said[said.len().saturating_sub(3)..].join("; ");
        let said = if said.is_empty() { format!("git ended with {}", self.status) } else { said };
        Error::Git { verb: verb.to_owned(), said }
    }
}

/// Waits for its end, and ends it with all that it started where that takes too long: asked first, since then it
/// takes back what it has half done.
fn ended(mut child: Child, verb: &str, patience: Duration) -> Result<ExitStatus, Error> {
    let at = Path::new("git");
    let pid = Pid::from_child(&child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(io("watch", at))?;
    if ends_within(&pidfd, patience)? {
        return child.wait().map_err(io("wait for", at));
    }
    kill_process_group(pid, Signal::TERM).ok();
    ends_within(&pidfd, GRACE)?;
    kill_process_group(pid, Signal::KILL).ok();
    child.wait().map_err(io("wait for", at))?;
    Err(Error::Timeout { verb: verb.to_owned(), patience })
}

fn ends_within(pidfd: &OwnedFd, patience: Duration) -> Result<bool, Error> {
    let until = Instant::now() + patience;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready.map_err(io("wait for", Path::new("git")))? > 0),
        }
    }
}

fn memory() -> Result<File, Error> {
    let made = memfd_create("git", MemfdFlags::CLOEXEC).map_err(io("make a file in", Path::new("memory")))?;
    Ok(made.into())
}

fn stdin(input: &[u8]) -> Result<Stdio, Error> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = memory()?;
    let at = Path::new("memory");
    file.write_all(input).and_then(|()| file.rewind()).map_err(io("write into", at))?;
    Ok(file.into())
}

fn shared(file: &File) -> Result<Stdio, Error> {
    Ok(file.try_clone().map_err(io("share a file in", Path::new("memory")))?.into())
}

fn whole(file: &mut File) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map_err(io("read from", Path::new("memory")))?;
    Ok(bytes)
}

/// The entries of output that ends each with a NUL.
pub(crate) fn entries(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// A path as git printed it.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
