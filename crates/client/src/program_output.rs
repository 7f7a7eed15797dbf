//! Asking a program, for its version and its help say: with nothing on its standard input, as much as a page of its output,
//! and not for ever.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long it may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
/// As much of its output is read, bytes.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// What it printed, on either output; why nothing, in words. One that fails has said nothing that counts.
pub fn program_output(
    program: &Path,
    arguments: &[String],
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    let (read, write) = std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let copy = write.try_clone().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).process_group(0);
    command.stdin(Stdio::null()).stdout(write).stderr(copy);
    let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    // Our ends of the pipe go with it: else it would never close.
    drop(command);
    let (tell, hear) = mpsc::channel();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        read.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).ok();
        let whole = (bytes.len() as u64) < MAX_OUTPUT_BYTES;
        // It stays a zombie, so that its number is nobody else's until its group is ended.
        let over = whole && waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).is_ok();
        tell.send((bytes, over)).ok();
    });
    let heard = hear.recv_timeout(PROGRAM_TIMEOUT);
    let status = kill_group(child, pid);
    let (bytes, over) = heard.map_err(|_| {
        format!("{} did not answer within {} s", program.display(), PROGRAM_TIMEOUT.as_secs())
    })?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match status {
        Some(status) if over && !status.success() => {
            let said =
                text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            Err(format!("{} {} failed ({status}): {said}", program.display(), arguments.join(" ")))
        }
        _ => Ok(text),
    }
}

/// With all that it has started.
fn kill_group(mut child: Child, pid: Pid) -> Option<ExitStatus> {
    killpg(pid, Signal::SIGKILL).ok();
    child.wait().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, String> {
        program_output(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &BTreeMap::new())
    }

    #[test]
    fn both_outputs_are_read_and_nothing_is_on_its_input() {
        assert_eq!(sh("echo a; echo b >&2; cat").unwrap(), "a\nb\n");
        assert!(
            program_output(Path::new("/no/such"), &[], &BTreeMap::new())
                .unwrap_err()
                .contains("cannot start")
        );
    }

    #[test]
    fn one_that_fails_has_told_nothing() {
        let why = sh("echo 1.2.3; echo fatal: no >&2; exit 127").unwrap_err();
        assert!(why.contains("exit status: 127") && why.ends_with("fatal: no"), "{why}");
        assert!(sh("kill -9 $$").unwrap_err().contains("signal: 9"));
    }

    #[test]
    fn one_that_prints_for_ever_is_cut_off() {
        assert_eq!(sh("exec yes").unwrap().len() as u64, MAX_OUTPUT_BYTES);
    }
}
