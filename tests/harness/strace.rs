//! Whether strace can be had: some trials break system calls with it.

use crate::record_skip;
use std::process::Command;

/// False where it is not there, or may not trace: that figure is skipped then.
pub fn can_trace(figure: &str) -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        record_skip(figure, "strace can't trace here");
    }
    can
}
