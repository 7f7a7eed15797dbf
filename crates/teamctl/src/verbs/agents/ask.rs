//! Asking a program for its version and its help: with nothing on its standard input, as much as a page of its output,
//! and not for ever.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// As much of its output is read, bytes.
const LIMIT: u64 = 1 << 20;

/// What it printed, on either output; why nothing, in words.
pub(super) fn ask(
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
    let child = Group(child);
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        read.take(LIMIT).read_to_end(&mut bytes).ok();
        tell.send(bytes).ok();
    });
    let bytes = hear.recv_timeout(PATIENCE);
    drop(child);
    let bytes =
        bytes.map_err(|_| format!("{} did not answer within {} s", program.display(), PATIENCE.as_secs()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Ended with all that it has started, however this goes.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id()) {
            killpg(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<String, String> {
        ask(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &BTreeMap::new())
    }

    #[test]
    fn both_outputs_are_read_and_nothing_is_on_its_input() {
        assert_eq!(sh("echo a; echo b >&2; cat").unwrap(), "a\nb\n");
        assert!(ask(Path::new("/no/such"), &[], &BTreeMap::new()).unwrap_err().contains("cannot start"));
    }

    #[test]
    fn one_that_prints_for_ever_is_cut_off() {
        assert_eq!(sh("exec yes").unwrap().len() as u64, LIMIT);
    }
}
