//! Runs a command of the user in a worktree: a test of a merge, or a setup or teardown command. The
//! command has a deadline, and its output goes into a log.

use crate::end_processes_of_worktree_command::end_processes_with_variable;
use crate::error::{Error, io_error};
use protocol::control_socket::ExitReport;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How much of the log's end is shown.
const SHOWN_LINES: usize = 10;
const SHOWN_BYTES: u64 = 4 << 10;

/// A command with its deadline and its log.
#[derive(Clone)]
pub struct LoggedCommand<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// The directory in which the command runs.
    pub directory: &'a Path,
    /// All of its environment variables, without `marker`.
    pub variables: Vec<(OsString, OsString)>,
    /// The name of an environment variable that the command gets in addition to `variables`. Its
    /// value is the path of the worktree. All processes that the command starts inherit the
    /// variable, so they can be found and ended.
    pub marker: &'static str,
    /// The worktree.
    pub worktree: &'a Path,
    /// After this time the command is ended.
    pub timeout: Duration,
    /// The file for all output. An old file is replaced.
    pub log: &'a Path,
}

/// Shows no variables, because they may contain secrets.
impl std::fmt::Debug for LoggedCommand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in {}", self.argv, self.worktree.display())
    }
}

/// How a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// It has exited with status 0.
    Succeeded,
    /// It has exited otherwise. The value is `exit status N` or `signal N`.
    Failed(String),
    /// It did not end in time.
    TimedOut,
}

impl LoggedCommand<'_> {
    /// Runs the command, and ends all processes that it has started.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the log cannot be written, or if the command cannot be started or ended.
    pub fn run(&self) -> Result<CommandEnd, Error> {
        self.finish(self.start()?)
    }

    /// Starts the command. The caller must then call [`LoggedCommand::finish`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the log cannot be written, or if the command cannot be started.
    pub fn start(&self) -> Result<Child, Error> {
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let log = options.open(self.log).map_err(io_error("write", self.log))?;
        self.start_child(&log)
    }

    fn program(&self) -> &Path {
        Path::new(self.argv.first().map_or("", String::as_str))
    }

    /// Waits for the end of the started command, and ends all processes that it has started.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the command cannot be ended.
    pub fn finish(&self, mut child: Child) -> Result<CommandEnd, Error> {
        let program = self.program();
        let has_ended = self.wait(&child).map_err(io_error("wait for", program));
        let processes_ended = end_processes_with_variable(self.marker, self.worktree);
        // A process may have another environment. The group exists until `wait` below.
        kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
        let status = child.wait().map_err(io_error("wait for", program))?;
        processes_ended?;
        Ok(match has_ended? {
            false => CommandEnd::TimedOut,
            true if status.success() => CommandEnd::Succeeded,
            true => CommandEnd::Failed(ExitReport::from_status(status).to_string()),
        })
    }

    /// The last lines of the log.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn last_lines(&self) -> Result<Vec<String>, Error> {
        let file = File::open(self.log).and_then(|mut file| last_lines(&mut file));
        file.map_err(io_error("read", self.log))
    }

    fn start_child(&self, log: &File) -> Result<Child, Error> {
        let program = self.program();
        let output = || Ok(Stdio::from(log.try_clone().map_err(io_error("write", self.log))?));
        let mut command = Command::new(program);
        command.args(self.argv.iter().skip(1)).current_dir(self.directory).process_group(0);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(self.marker, self.worktree);
        command.stdin(Stdio::null()).stdout(output()?).stderr(output()?);
        command.spawn().map_err(io_error("start", program))
    }

    /// Waits for the end of the command. Returns false if the time is over.
    fn wait(&self, child: &Child) -> std::io::Result<bool> {
        // A process that has exited already has no handle.
        match platform::system().open_process(child.id())? {
            Some(handle) => handle.exits_within(self.timeout),
            None => Ok(true),
        }
    }
}

/// The last lines of a file.
fn last_lines(file: &mut File) -> std::io::Result<Vec<String>> {
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

    /// Runs a command of sh. Returns its end and the last lines of its log.
    fn run(script: &str, timeout: Duration) -> (CommandEnd, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let (argv, log) = (["sh", "-c", script].map(str::to_owned), path.join("log"));
        let variables = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        let (worktree, marker) = (path.as_path(), "TEAMD_TEST_WORKTREE");
        let command =
            LoggedCommand { argv: &argv, directory: &path, variables, marker, worktree, timeout, log: &log };
        (command.run().unwrap(), command.last_lines().unwrap())
    }

    #[test]
    fn end_of_a_long_log_is_shown() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(last_lines(&mut file).unwrap().is_empty());
        (1..=2000).for_each(|n| writeln!(file, "line {n}").unwrap());
        let lines = last_lines(&mut file).unwrap();
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 1991", "line 2000"));
    }

    #[test]
    fn command_ends_with_all_of_its_processes() {
        let minute = Duration::from_secs(60);
        let background = "setsid sleep 1000 & echo $!; env -i /bin/sleep 1000 & echo $!";
        let (end, pids) = run(background, minute);
        assert_eq!((end, pids.len()), (CommandEnd::Succeeded, 2));
        for pid in pids {
            // The process may not be reaped yet.
            let handle = platform::system().open_process(pid.parse().unwrap()).unwrap();
            assert!(handle.is_none_or(|handle| handle.exits_within(minute).unwrap()), "{pid}");
        }
        let (end, lines) = run("echo one; echo two >&2; exit 3", minute);
        assert_eq!((end, lines), (CommandEnd::Failed("exit 3".to_owned()), vec!["one".into(), "two".into()]));
        assert_eq!(run("kill -9 $$", minute).0, CommandEnd::Failed("signal 9".to_owned()));
        assert_eq!(run("sleep 1000", Duration::from_millis(100)).0, CommandEnd::TimedOut);
    }
}
