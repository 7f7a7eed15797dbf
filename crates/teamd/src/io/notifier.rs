//! Runs `teamctl notify`, which runs the user's notification command and ends after ten seconds at the
//! latest.

use rustix::io::ioctl_fionbio;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// How much of the command's error output is read, in bytes.
const MAX_ERROR_BYTES: u64 = 4096;
/// The end of the error line of `teamctl notify` if the user has no notification command.
const NO_COMMAND: &str = "has no `notify_command`";

/// Runs the command line `argv` on a thread of its own. If it fails, calls `report` with the reason, a
/// sentence for people. It is no failure if the user has no notification command.
///
/// # Panics
///
/// If `argv` is empty.
pub(crate) fn run_notifier(argv: &[String], report: impl Fn(String) + Send + 'static) {
    let (program, arguments) = argv.split_first().expect("the core names a program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // In its own process group, the command gets no SIGINT from Ctrl-C in the daemon's pane.
    command.process_group(0);
    let thread = std::thread::Builder::new().name("notifier".to_owned());
    let started = thread.spawn(move || match command.spawn() {
        Ok(child) => failure(child).into_iter().for_each(report),
        Err(error) => report(format!("cannot start teamctl notify: {error}")),
    });
    if let Err(error) = started {
        tracing::warn!("cannot notify: {error}");
    }
}

/// Waits for the command. Returns why it has failed: its error line, or else its status.
fn failure(mut child: Child) -> Option<String> {
    let status = match child.wait() {
        Ok(status) if status.success() => return None,
        Ok(status) => status,
        Err(error) => return Some(format!("cannot wait for teamctl notify: {error}")),
    };
    let line = error_line(&mut child, status);
    (!line.ends_with(NO_COMMAND)).then_some(line)
}

/// The first line of the command's error output. A process that the command has left behind may keep the
/// output open, so the read does not wait.
fn error_line(child: &mut Child, status: ExitStatus) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take()
        && ioctl_fionbio(&stderr, true).is_ok()
    {
        // The read ends with an error if the output is still open. What came before stays.
        stderr.take(MAX_ERROR_BYTES).read_to_end(&mut text).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("teamctl: ").unwrap_or(line);
    if line.is_empty() { status.to_string() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// The failure of a shell script. `None` if it does not fail.
    fn failure_of(script: &str) -> Option<String> {
        let (sender, failures) = mpsc::channel();
        let argv = ["sh", "-c", script].map(str::to_owned);
        run_notifier(&argv, move |reason| sender.send(reason).unwrap());
        // The sender is dropped when the command has ended.
        failures.recv_timeout(Duration::from_secs(30)).ok()
    }

    #[test]
    fn only_failures_are_reported() {
        assert_eq!(failure_of("exit 0"), None);
        let without_command =
            "echo 'teamctl: cannot notify: config.toml has no `notify_command`' >&2; exit 78";
        assert_eq!(failure_of(without_command), None);
        let reason = failure_of("echo 'teamctl: cannot start x' >&2; echo '  see y' >&2; exit 72");
        assert_eq!(reason.as_deref(), Some("cannot start x"));
        assert_eq!(failure_of("exit 3").as_deref(), Some("exit status: 3"));
        let left_behind = failure_of("sleep 30 & echo 'teamctl: no' >&2; kill $! ; exit 3");
        assert_eq!(left_behind.as_deref(), Some("no"));
    }
}
