//! Closes inherited file descriptors, for example a lock of flock(1) or a pipe of a test runner. A
//! tmux server that inherits them holds the lock or pipe as long as it runs.

use std::os::fd::RawFd;

/// The bit of `O_CLOEXEC` in the flags of `/proc/self/fdinfo`.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// Closes all descriptors above standard error that programs started by this process would inherit.
/// Descriptors that this process has opened itself stay open, because they have the close-on-exec
/// flag and are not inherited.
pub(crate) fn close_inherited_descriptors() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| *fd > 2 && is_inheritable(*fd)) {
        nix::unistd::close(fd).ok();
    }
}

/// Whether a program that this process starts gets the descriptor.
fn is_inheritable(fd: RawFd) -> bool {
    let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
}
