//! Runs a program and returns its output. teamd uses this for short commands, such as `--version`
//! or `--help`. Standard input is empty, the size of the output is limited, and there is a timeout.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use platform::ExitHandle;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time that the program may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the output that is read, in bytes.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Runs the program and returns what the program wrote to standard output and standard error.
///
/// # Errors
///
/// A text for people, if the program cannot be started, fails, or does not finish in time.
pub fn program_output(
    program: &Path,
    arguments: &[String],
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    match run_program(program, arguments, env)? {
        (text, Some(status)) if !status.success() => {
            let last_line =
                text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            Err(format!("{} {} failed ({status}): {last_line}", program.display(), arguments.join(" ")))
        }
        (text, _) => Ok(text),
    }
}

/// Runs the program and returns whether its exit code was 0.
///
/// # Errors
///
/// A text for people, if the program cannot be started, was ended by a signal, or does not finish
/// in time.
pub fn program_succeeds(
    program: &Path,
    arguments: &[String],
    env: &BTreeMap<String, String>,
) -> Result<bool, String> {
    let (_, status) = run_program(program, arguments, env)?;
    let code = status.and_then(|status| status.code());
    code.map(|code| code == 0).ok_or_else(|| format!("{} did not end by itself", program.display()))
}

/// Runs the program. The status is `None` if the program wrote more output than is read.
fn run_program(
    program: &Path,
    arguments: &[String],
    env: &BTreeMap<String, String>,
) -> Result<(String, Option<ExitStatus>), String> {
    let (output, stdout) = std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let stderr = stdout.try_clone().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).process_group(0);
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    // `command` holds copies of the pipe's write end. The output ends only after they are closed.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    // `None` if the process has exited already.
    let process = ExitHandle::open(child.id());
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).ok();
        let is_complete = (bytes.len() as u64) < MAX_OUTPUT_BYTES;
        // The wait for the exit does not reap the process. Until `kill_group` reaps it, the process
        // is a zombie and keeps its pid. So `kill_group` cannot kill another process that got the
        // same pid.
        let has_exited =
            is_complete && process.is_none_or(|process| process.exits_within(PROGRAM_TIMEOUT).is_ok());
        sender.send((bytes, has_exited)).ok();
    });
    let received = receiver.recv_timeout(PROGRAM_TIMEOUT);
    let status = kill_group(child, pid);
    let (bytes, has_exited) = received.map_err(|_| {
        format!("{} did not answer within {} s", program.display(), PROGRAM_TIMEOUT.as_secs())
    })?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), status.filter(|_| has_exited)))
}

/// Kills the process and all other processes of its group.
fn kill_group(mut child: Child, pid: Pid) -> Option<ExitStatus> {
    killpg(pid, Signal::SIGKILL).ok();
    child.wait().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(script: &str) -> Result<String, String> {
        program_output(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &BTreeMap::new())
    }

    #[test]
    fn both_outputs_are_read_and_stdin_is_empty() {
        assert_eq!(run_shell("echo a; echo b >&2; cat").unwrap(), "a\nb\n");
        assert!(
            program_output(Path::new("/no/such"), &[], &BTreeMap::new())
                .unwrap_err()
                .contains("cannot start")
        );
    }

    #[test]
    fn failed_program_is_an_error() {
        let error = run_shell("echo 1.2.3; echo fatal: no >&2; exit 127").unwrap_err();
        assert!(error.contains("exit status: 127") && error.ends_with("fatal: no"), "{error}");
        assert!(run_shell("kill -9 $$").unwrap_err().contains("signal: 9"));
    }

    #[test]
    fn exit_code_says_yes_or_no() {
        let succeeds = |script: &str| {
            program_succeeds(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &BTreeMap::new())
        };
        assert_eq!((succeeds("echo yes"), succeeds("echo no; exit 1")), (Ok(true), Ok(false)));
        assert!(succeeds("kill -9 $$").unwrap_err().contains("did not end by itself"));
    }

    #[test]
    fn endless_output_is_cut_off() {
        assert_eq!(run_shell("exec yes").unwrap().len() as u64, MAX_OUTPUT_BYTES);
    }
}
