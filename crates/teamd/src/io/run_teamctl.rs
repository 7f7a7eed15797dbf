//! Runs two commands of `teamctl` for the daemon. `teamctl notify` notifies people outside of tmux,
//! and `teamctl hosts fetch-branch` fetches a member's branch from another host. Both have a time
//! limit of their own, so the daemon sets none.

use protocol::teamctl_ask_setup_and_record::ASK_VARIABLE;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Variables that are removed from the environment of `teamctl`. The daemon has these variables if
/// an agent has started it. With `TEAMD_HOST`, `teamctl` would run on another machine. With the
/// others, it would act as that agent.
const REMOVED_VARIABLES: [&str; 7] =
    ["TEAMD_TEAM", "TEAMD_MEMBER", "TEAMD_TOKEN", "TEAMD_SPAWN", "TEAMD_WAKE_FD", "TEAMD_HOST", ASK_VARIABLE];

/// Runs the command line `argv` on a new thread. The thread waits for the end of the command and
/// then calls `report`: with `None` if the command has succeeded, or else with the reason of the
/// failure as a text for people.
///
/// # Errors
///
/// If no thread can be started: the reason as a text for people.
///
/// # Panics
///
/// If `argv` is empty.
pub(crate) fn run_teamctl(
    argv: &[String],
    report: impl FnOnce(Option<String>) + Send + 'static,
) -> Result<(), String> {
    let (program, arguments) = argv.split_first().expect("the core names a program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // In its own process group, the command gets no SIGINT from Ctrl-C in the daemon's pane.
    command.process_group(0);
    for name in REMOVED_VARIABLES {
        command.env_remove(name);
    }
    let thread = std::thread::Builder::new().name("teamctl".to_owned());
    let started = thread.spawn(move || match command.output() {
        Ok(output) => report(failure(&output)),
        Err(error) => report(Some(format!("cannot run teamctl: {error}"))),
    });
    started.map(drop).map_err(|error| format!("cannot start a thread for teamctl: {error}"))
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
        run_teamctl(&argv, move |reason| sender.send(reason).unwrap()).unwrap();
        failures.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    #[test]
    fn only_failures_are_reported() {
        assert_eq!(failure_of("exit 0"), None);
        let reason = failure_of("echo 'teamctl: cannot start x' >&2; echo '  see y' >&2; exit 72");
        assert_eq!(reason.as_deref(), Some("cannot start x"));
        assert_eq!(failure_of("exit 3").as_deref(), Some("exit status: 3"));
    }
}
