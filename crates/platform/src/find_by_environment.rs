//! Finds processes by an entry of their environment.

use crate::process_entry::{EnvironmentError, ProcessEntry};
use crate::system_trait::System;
use std::io;
use std::time::Instant;

/// Returns the processes of this user that have `entry`, such as `NAME=value`, in their
/// environment. Processes whose environment the operating system hides are not found. If [`System`]
/// reads environments with `ps`, processes that have `entry` as an argument are found too.
///
/// While a process calls `exec`, its environment cannot be read. Until `deadline`, this function
/// tries again to read the environment of such a process.
pub fn find_by_environment(
    system: &dyn System,
    entry: &str,
    deadline: Instant,
) -> io::Result<Vec<ProcessEntry>> {
    let mut found = Vec::new();
    let mut unread = system.environments()?;
    loop {
        unread.retain(|process| match &process.entries {
            Ok(environment) => {
                let has_entry = environment.split(|byte| *byte == 0).any(|other| other == entry.as_bytes());
                found.extend(has_entry.then_some(process.process));
                false
            }
            Err(EnvironmentError::Temporary) => true,
            Err(EnvironmentError::Unsupported) => false,
        });
        if unread.is_empty() || Instant::now() >= deadline {
            return Ok(found);
        }
        std::thread::yield_now();
        unread.iter_mut().for_each(|process| process.entries = system.environment(process.process.pid));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn child_is_found_also_while_it_calls_exec() {
        // With 100 children, some searches run during a child's `exec`.
        let systems: [(&dyn System, u32); 2] = [(&crate::linux::Linux, 100), (&crate::posix::Posix, 1)];
        for (system, children) in systems {
            for _ in 0..children {
                let mut child = Command::new("sleep").arg("1000").env("TEAMD_FIND", "x-1").spawn().unwrap();
                let deadline = Instant::now() + Duration::from_secs(10);
                let found = find_by_environment(system, "TEAMD_FIND=x-1", deadline).unwrap();
                let found_by_prefix = find_by_environment(system, "TEAMD_FIND=x", deadline).unwrap();
                child.kill().unwrap();
                child.wait().unwrap();
                assert!(found.iter().any(|process| process.pid == child.id()), "{system:?} {found:?}");
                assert_eq!(found_by_prefix, []);
            }
        }
    }
}
