//! Checks that strace works. Some tests use it to make system calls fail.

use crate::record_skip;
use std::process::Command;

/// Whether strace is installed and may trace. If not, records that `figure` is skipped.
pub fn can_trace(figure: &str) -> bool {
    let status = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    let can_trace = status.is_ok_and(|status| status.success());
    if !can_trace {
        record_skip(figure, "strace can't trace here");
    }
    can_trace
}
