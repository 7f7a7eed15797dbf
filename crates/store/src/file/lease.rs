//! Whether anybody else has a file open. The kernel knows: it grants a lease for writing on a file that is open once
//! alone. One that is granted is given back at once; here it is a question, not a guard.
//!
//! One `unsafe` call, since no library wraps this one.

#![allow(unsafe_code)]

use std::fs::File;

/// True if no other descriptor of any process leads to `file`, which must be open for reading and writing; false also
/// where a file system does not tell.
#[cfg(target_os = "linux")]
pub(super) fn is_open_here_alone(file: &File) -> bool {
    use nix::libc::{F_SETLEASE, F_UNLCK, F_WRLCK, SIGURG, c_int, fcntl};
    use std::os::fd::AsRawFd;

    /// As fcntl(2) has it; the library does not name it.
    const F_SETSIG: c_int = 10;
    // SAFETY: both commands take a plain number, and the descriptor is open for as long as `file` is borrowed.
    let set = |command: c_int, to: c_int| unsafe { fcntl(file.as_raw_fd(), command, to) } == 0;
    // Whoever opens it in between waits until it is given back, and a signal tells us of that: SIGIO would end this
    // process, SIGURG does nothing.
    set(F_SETSIG, SIGURG) && set(F_SETLEASE, F_WRLCK as c_int) && set(F_SETLEASE, F_UNLCK as c_int)
}

/// Nobody can tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_open_here_alone(_: &File) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_seen_for_as_long_as_it_has_it_open() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("x");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        assert!(is_open_here_alone(&file));
        let reader = File::open(&path).unwrap();
        assert!(!is_open_here_alone(&file));
        drop(reader);
        assert!(is_open_here_alone(&file));
    }
}
