//! Closes the descriptors that this process has inherited. They are listed in /dev/fd, which Linux,
//! macOS and FreeBSD with fdescfs have.

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::os::fd::{BorrowedFd, RawFd};

/// Closes all inherited descriptors except standard input, output and error. Descriptors that this
/// process has opened itself stay open: they have the close-on-exec flag.
///
/// Examples of inherited descriptors are a lock of flock(1) and a pipe of a test runner. A program
/// that this process starts would inherit them too. Then the lock would stay held, and the pipe
/// open, until that program exits.
pub fn close_inherited_descriptors() {
    let entries = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| *fd > 2 && is_inheritable(*fd)) {
        nix::unistd::close(fd).ok();
    }
}

/// Whether a program that this process starts gets the descriptor. False if it is not open.
#[allow(unsafe_code)]
fn is_inheritable(fd: RawFd) -> bool {
    // SAFETY: fcntl accepts any number, and fails if no descriptor has it. Nothing keeps the borrow.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl(fd, FcntlArg::F_GETFD)
        .is_ok_and(|flags| !FdFlag::from_bits_truncate(flags).contains(FdFlag::FD_CLOEXEC))
}
