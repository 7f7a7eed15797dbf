//! `notify`: the person's own command, which the daemon has run when a request waits. Never a shell, and not for ever.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use profile::ProfileRegistry;
use protocol::error::{ErrorKind, ErrorReport};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long it may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Tell a person something by the command that you have named for it
///
/// The command is `notify_command` in ~/.config/teamd/config.toml. teamd runs it when a request waits, and for the rest that
/// docs/requests.md tells of. By hand it shows whether the command works; where none is named it says so (78).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl notify 'a word to try it'")]
pub(crate) struct NotifyArgs {
    /// The words
    text: String,
}

pub(crate) fn run(args: &NotifyArgs) -> Result<ExitCode, ErrorReport> {
    let shelf = ProfileRegistry::for_user();
    let words =
        shelf.notify_command(&args.text)?.ok_or_else(|| no_command(shelf.config_path("config.toml")))?;
    run_command(&words, &args.text, COMMAND_TIMEOUT).map(|()| ExitCode::SUCCESS)
}

/// That ends in the exit code alone where teamd asks, which shows it to nobody: to have no command is no fault there.
fn no_command(config: Option<PathBuf>) -> ErrorReport {
    let config = config.unwrap_or_else(|| "~/.config/teamd/config.toml".into()).display().to_string();
    ErrorReport::new(ErrorKind::Config, format!("cannot tell anybody: {config} names no command for it"))
        .with_help(r#"name one there, as in: notify_command = ["notify-send", "{text}"]"#)
}

fn run_command(words: &[String], text: &str, patience: Duration) -> Result<(), ErrorReport> {
    let (program, arguments) = words.split_first().expect("a configured command has a program");
    let mut command = Command::new(program);
    command.args(arguments).env("TEAMD_NOTICE", text).stdin(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot start {program}: {error}"))
            .with_help("see `notify_command` in config.toml: is it installed, and in the PATH?")
    })?;
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait()).ok());
    match hear.recv_timeout(patience) {
        Ok(ended) => ended.map_err(|error| error.to_string()).and_then(check_status),
        Err(_) => {
            // With all that it has started.
            group.map(|group| killpg(group, Signal::SIGKILL).ok()).ok();
            hear.recv().ok();
            Err(format!("it took longer than {} s", patience.as_secs()))
        }
    }
    .map_err(|why| ErrorReport::new(ErrorKind::Io, format!("cannot tell by {program}: {why}")))
}

fn check_status(ended: ExitStatus) -> Result<(), String> {
    if ended.success() { Ok(()) } else { Err(ended.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, patience: Duration) -> Result<(), ErrorReport> {
        run_command(&["sh", "-c", script, "$(x)"].map(str::to_owned), "ann; asks", patience)
    }

    #[test]
    fn its_words_are_in_its_environment_and_its_end_is_told() {
        let long = Duration::from_secs(30);
        assert_eq!(sh(r#"[ "$TEAMD_NOTICE" = 'ann; asks' ] && [ "$0" = '$(x)' ]"#, long), Ok(()));
        assert!(sh("exit 3", long).unwrap_err().message.contains("exit status: 3"));
        assert_eq!(
            run_command(&["/no/such".to_owned()], "x", long).unwrap_err().kind,
            ErrorKind::MissingPath
        );
    }

    #[test]
    fn one_that_does_not_end_is_ended_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("exec 3>{}; sleep 3600 & wait", pipe.display());
        // Whoever reads sees an end once nobody is left who could write.
        let (tell, hear) = mpsc::channel();
        std::thread::spawn(move || tell.send(std::fs::read(pipe)).ok());
        let fault = sh(&script, Duration::from_millis(500)).unwrap_err();
        assert!(fault.message.contains("took longer"), "{fault}");
        assert!(hear.recv_timeout(Duration::from_secs(20)).is_ok(), "its child lives");
    }
}
