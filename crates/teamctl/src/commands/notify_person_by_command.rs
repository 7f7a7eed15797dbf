//! `teamctl notify`: runs the user's notification command, without a shell and with a time limit.
//! The daemon starts `teamctl notify` when a request waits for a person, and `teamctl run` calls
//! the same code when a run ends.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use profile::ProfileRegistry;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Whether the output of the notification command is shown.
#[derive(Clone, Copy)]
pub(crate) enum CommandOutput {
    Shown,
    Discarded,
}

/// How long the notification command may run. After this time it is killed.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Send a notification with your notify command
///
/// Example: teamctl notify 'this is a test'
///
/// Your notify command is the entry `notify_command` in ~/.config/teamd/config.toml. teamd runs
/// this command when a request waits for you, and for the other events in docs/requests.md. Exit
/// code 78: config.toml has no such entry, or is invalid.
#[derive(Debug, clap::Args)]
pub(crate) struct NotifyArgs {
    /// Text of the notification
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Discard the output of your notify command, and succeed even if none is configured; teamd
    /// uses this option
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &NotifyArgs) -> Result<ExitCode, ErrorReport> {
    let output = if args.quiet { CommandOutput::Discarded } else { CommandOutput::Shown };
    if !notify_person(&args.text, output)? && !args.quiet {
        return Err(missing_command_error());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the user's notification command with `text`. Returns `false` if config.toml names no
/// command.
///
/// # Errors
///
/// `Config` if config.toml is invalid; `MissingPath` or `Io` if the command fails.
pub(crate) fn notify_person(text: &str, output: CommandOutput) -> Result<bool, ErrorReport> {
    let Some(command) = ProfileRegistry::for_user().notify_command(text)? else { return Ok(false) };
    run_command(&command, text, output, COMMAND_TIMEOUT)?;
    Ok(true)
}

fn missing_command_error() -> ErrorReport {
    let config = ProfileRegistry::for_user().config_path("config.toml");
    let config = config.unwrap_or_else(|| "~/.config/teamd/config.toml".into()).display().to_string();
    ErrorReport::new(ErrorKind::Config, format!("cannot notify: {config} has no `notify_command`"))
        .with_help(r#"add one, as in: notify_command = ["notify-send", "{text}"]"#)
}

fn run_command(
    argv: &[String],
    text: &str,
    output: CommandOutput,
    timeout: Duration,
) -> Result<(), ErrorReport> {
    let (program, arguments) = argv.split_first().expect("a configured command has a program");
    let mut command = Command::new(program);
    command.args(arguments).env("TEAMD_NOTICE", text).stdin(Stdio::null()).process_group(0);
    if let CommandOutput::Discarded = output {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let mut child = command.spawn().map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot start {program}: {error}"))
            .with_help("see `notify_command` in config.toml: is it installed, and in the PATH?")
    })?;
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait()).ok());
    match receiver.recv_timeout(timeout) {
        Ok(status) => status.map_err(|error| error.to_string()).and_then(check_status),
        Err(_) => {
            // The command's children are in its process group.
            group.map(|group| killpg(group, Signal::SIGKILL).ok()).ok();
            receiver.recv().ok();
            Err(format!("it took longer than {} s", timeout.as_secs()))
        }
    }
    .map_err(|reason| ErrorReport::new(ErrorKind::Io, format!("cannot notify with {program}: {reason}")))
}

fn check_status(status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_script(script: &str, timeout: Duration) -> Result<(), ErrorReport> {
        run_command(
            &["sh", "-c", script, "$(x)"].map(str::to_owned),
            "ann; asks",
            CommandOutput::Shown,
            timeout,
        )
    }

    #[test]
    fn command_receives_the_text_and_its_failure_is_reported() {
        let timeout = Duration::from_secs(30);
        assert_eq!(run_script(r#"[ "$TEAMD_NOTICE" = 'ann; asks' ] && [ "$0" = '$(x)' ]"#, timeout), Ok(()));
        assert!(run_script("exit 3", timeout).unwrap_err().message.contains("exit status: 3"));
        assert_eq!(
            run_command(&["/no/such".to_owned()], "x", CommandOutput::Discarded, timeout).unwrap_err().kind,
            ErrorKind::MissingPath
        );
    }

    #[test]
    fn command_is_killed_with_its_children_after_the_timeout() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("exec 3>{}; sleep 3600 & wait", pipe.display());
        // The read ends when no process has the pipe open for writing.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(std::fs::read(pipe)).ok());
        let error = run_script(&script, Duration::from_millis(500)).unwrap_err();
        assert!(error.message.contains("took longer"), "{error}");
        assert!(receiver.recv_timeout(Duration::from_secs(20)).is_ok(), "the child process is killed");
    }
}
