//! Runs `teamctl notify`, which notifies people outside of tmux with the command from the user's
//! config.toml. `teamctl notify` kills that command after ten seconds. So no time limit is needed
//! here.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Runs the command line `argv` and waits for it on a new thread, so that the caller does not wait.
/// If the command fails, that thread calls `report` with the reason as a text for people.
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
    let started = thread.spawn(move || match command.output() {
        Ok(output) => failure(&output).into_iter().for_each(report),
        Err(error) => report(format!("cannot run teamctl notify: {error}")),
    });
    if let Err(error) = started {
        tracing::warn!("cannot notify: {error}");
    }
}

/// Returns why the command failed: the first line of its standard error, or its exit status if that
/// line is empty. `None` if the command succeeded.
fn failure(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("teamctl: ").unwrap_or(line);
    let reason = if line.is_empty() { output.status.to_string() } else { line.to_owned() };
    (!output.status.success()).then_some(reason)
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
        let reason = failure_of("echo 'teamctl: cannot start x' >&2; echo '  see y' >&2; exit 72");
        assert_eq!(reason.as_deref(), Some("cannot start x"));
        assert_eq!(failure_of("exit 3").as_deref(), Some("exit status: 3"));
    }
}
