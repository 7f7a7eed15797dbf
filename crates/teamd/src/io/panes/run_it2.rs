//! Runs `it2`, the command line of iTerm2. It is a Python program that connects to iTerm2's API, so
//! one call takes about 300 ms.

use platform::ExitHandle;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// How long one call may take. iTerm2 does not answer while it asks a person for a permission.
const TIMEOUT: Duration = Duration::from_secs(8);
/// The exit code of `it2` if there is no such session.
const NO_SUCH_SESSION: i32 = 3;

/// Why a call of `it2` failed.
#[derive(Debug)]
pub(super) enum It2Error {
    NotStarted(std::io::Error),
    /// It was killed after [`TIMEOUT`].
    TimedOut,
    NoSuchSession,
    /// It has failed for another reason, with this text.
    Failed(String),
}

/// Runs `it2 session` with `arguments`. Returns its output.
///
/// `it2` gets the environment of the daemon, with the cookie `ITERM2_COOKIE`. iTerm2 accepts a
/// cookie only once, so later calls of `it2` get another one from iTerm2 through AppleScript.
pub(super) fn run_it2(it2: &Path, arguments: &[&str]) -> Result<String, It2Error> {
    let mut command = Command::new(it2);
    command.arg("session").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A wrapper around `it2` may start it as a child, so the timeout ends the whole group.
    command.process_group(0);
    let mut child = command.spawn().map_err(It2Error::NotStarted)?;
    // This thread waits for the output of `it2`, and another thread kills `it2` after the timeout.
    // If no handle for the process can be opened, `it2` has exited already and need not be killed.
    let pid = child.id();
    let handle = ExitHandle::open(pid);
    let watchdog = std::thread::Builder::new().name("it2-timeout".into()).spawn(move || {
        let handle = handle.filter(|handle| !handle.exits_within(TIMEOUT).unwrap_or_default());
        handle.map(|handle| kill_group(&handle, pid)).is_some()
    });
    let watchdog = watchdog.map_err(|error| {
        child.kill().and_then(|()| child.wait()).ok();
        It2Error::NotStarted(error)
    })?;
    let output = child.wait_with_output().map_err(It2Error::NotStarted)?;
    match watchdog.join().unwrap_or_default() {
        true => Err(It2Error::TimedOut),
        false => outcome(&output),
    }
}

/// Kills `it2` and the other processes of its process group. First stops `it2` with SIGSTOP: a
/// stopped process does not exit, so its pid cannot become the pid of another process before the
/// group is killed. If SIGSTOP fails, `it2` has exited already.
fn kill_group(it2: &ExitHandle, pid: u32) {
    if it2.send_signal(Signal::STOP).is_err() {
        return;
    }
    let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
    group.map(|group| kill_process_group(group, Signal::KILL));
}

fn outcome(output: &Output) -> Result<String, It2Error> {
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Some(NO_SUCH_SESSION) => Err(It2Error::NoSuchSession),
        _ => Err(It2Error::Failed(failure_text(&String::from_utf8_lossy(&output.stderr)))),
    }
}

/// The line of the error output that says what failed. Python may print a traceback around it.
fn failure_text(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find_map(|line| line.strip_prefix("Error: "));
    error.or_else(|| lines.next_back()).unwrap_or("it2 printed no error").to_owned()
}

impl It2Error {
    /// The report of this error. `action` completes "cannot …".
    pub(super) fn to_report(&self, action: &str, it2: &Path) -> ErrorReport {
        let it2 = it2.display();
        let (kind, cause, help) = match self {
            It2Error::NotStarted(error) => (
                ErrorKind::MissingPath,
                format!("{it2}: {error}"),
                "install it again: pipx install it2; then: teamctl spawn NAME --backend iterm2",
            ),
            It2Error::TimedOut => (
                ErrorKind::Timeout,
                format!("iTerm2 did not answer within {} s", TIMEOUT.as_secs()),
                "does iTerm2 ask for a permission? to see: it2 session list",
            ),
            It2Error::NoSuchSession => (
                ErrorKind::NotFound,
                "iTerm2 has no such session any more".to_owned(),
                "see the members: teamctl status",
            ),
            It2Error::Failed(text) => (
                ErrorKind::Io,
                format!("it2 says: {text}"),
                "enable iTerm2's Python API in Settings > General > Magic, and make the window large enough to split; to try: it2 session list",
            ),
        };
        ErrorReport::new(kind, format!("cannot {action}: {cause}")).with_help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_failed_is_found() {
        assert_eq!(failure_text("Traceback\n  x\nError: Not enabled.\nEnable it\n"), "Not enabled.");
        assert_eq!(failure_text("Traceback\nModuleNotFoundError: iterm2\n"), "ModuleNotFoundError: iterm2");
        assert_eq!(failure_text("\n"), "it2 printed no error");
    }
}
