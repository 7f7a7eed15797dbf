//! Write leases (fcntl(2), `F_SETLEASE`).
//!
//! The kernel grants a write lease only if the file is open exactly once. While the lease is held,
//! every other `open` of the file waits. There are two exceptions. On a network file system, the
//! lease is granted although another machine may have the file open. On overlayfs, the lease is
//! granted although the file may be open through another layer.

#![allow(unsafe_code)]

use crate::WriteLease;
use nix::libc::{F_SETLEASE, F_UNLCK, F_WRLCK, SIGURG, c_int, fcntl};
use std::fs::File;
use std::os::fd::AsRawFd;

/// The value in fcntl(2); `libc` does not define it.
const F_SETSIG: c_int = 10;

pub(super) fn take(file: &File) -> Option<WriteLease<'_>> {
    // The kernel sends a signal when another process opens the leased file. `F_SETSIG` chooses
    // SIGURG, which has no effect by default. Without it, the kernel would send SIGIO, which would
    // end this process.
    let is_taken = set(file, F_SETSIG, SIGURG) && set(file, F_SETLEASE, F_WRLCK as c_int);
    is_taken.then_some(WriteLease { file, release })
}

fn release(file: &File) {
    set(file, F_SETLEASE, F_UNLCK as c_int);
}

fn set(file: &File, command: c_int, value: c_int) -> bool {
    // SAFETY: `command` is `F_SETSIG` or `F_SETLEASE`, which take an integer argument, and the
    // descriptor is open as long as `file` is borrowed. No library wraps `F_SETLEASE`.
    unsafe { fcntl(file.as_raw_fd(), command, value) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lease_is_granted_while_a_reader_has_the_file_open() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("x");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        assert!(take(&file).is_some());
        let reader = File::open(&path).unwrap();
        assert!(take(&file).is_none());
        drop(reader);
        assert!(take(&file).is_some());
    }
}
