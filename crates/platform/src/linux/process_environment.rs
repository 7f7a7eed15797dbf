//! Reads the environment of a process.

use super::process_table::{environment_length, is_gone};
use crate::EnvironmentError;
use std::io;

/// Reads /proc/PID/environ. Empty if the process is gone, or if this user may not read its environment.
///
/// While a process calls `exec`, its environment reads as empty or cut. So the bytes count as complete
/// only if /proc/PID/stat states the same length. Processes without a program (kernel threads and
/// zombies) have no environment, so they are not checked.
pub(super) fn read(pid: u32) -> Result<Vec<u8>, EnvironmentError> {
    let environment = match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(environment) => environment,
        Err(error) if is_final(&error) => return Ok(Vec::new()),
        Err(_) => return Err(EnvironmentError::Temporary),
    };
    let has_program = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    let is_complete = !has_program || environment_length(pid) == Some(environment.len());
    if is_complete { Ok(environment) } else { Err(EnvironmentError::Temporary) }
}

/// Whether a process's environment cannot be read later either.
fn is_final(error: &io::Error) -> bool {
    is_gone(error) || error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn process_without_variables_is_not_waited_for() {
        let mut child = Command::new("sleep").arg("1000").env_clear().spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let environment = loop {
            match read(child.id()) {
                Err(EnvironmentError::Temporary) if Instant::now() < deadline => std::thread::yield_now(),
                environment => break environment,
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(environment, Ok(Vec::new()));
    }
}
