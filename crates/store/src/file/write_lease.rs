//! Whether anybody else has a file open. The kernel knows: it grants a lease for writing on a file that is open once
//! alone, and as long as it is held, whoever opens the file waits. Asked only of file systems that know all who open
//! their files (`stamps`): others grant it for one of several machines or layers.
//!
//! One `unsafe` call, since no library wraps this one.

#![allow(unsafe_code)]

use std::fs::File;

/// No other descriptor leads to the file; dropped, whoever waits to open it goes on.
#[derive(Debug)]
pub(super) struct WriteLease<'f>(&'f File);

#[cfg(target_os = "linux")]
impl WriteLease<'_> {
    /// None if any other descriptor of any process leads to `file`, which must be open for reading and writing.
    pub(super) fn take(file: &File) -> Option<WriteLease<'_>> {
        use nix::libc::{F_SETLEASE, F_WRLCK, SIGURG, c_int};

        /// As fcntl(2) has it; the library does not name it.
        const F_SETSIG: c_int = 10;
        // That somebody waits is told by a signal: SIGIO would end this process, SIGURG does nothing.
        (set_lease(file, F_SETSIG, SIGURG) && set_lease(file, F_SETLEASE, F_WRLCK as c_int))
            .then_some(WriteLease(file))
    }
}

#[cfg(target_os = "linux")]
impl Drop for WriteLease<'_> {
    fn drop(&mut self) {
        set_lease(self.0, nix::libc::F_SETLEASE, nix::libc::F_UNLCK as nix::libc::c_int);
    }
}

#[cfg(target_os = "linux")]
fn set_lease(file: &File, command: nix::libc::c_int, to: nix::libc::c_int) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: both commands take a plain number, and the descriptor is open for as long as `file` is borrowed.
    unsafe { nix::libc::fcntl(file.as_raw_fd(), command, to) == 0 }
}

#[cfg(not(target_os = "linux"))]
impl WriteLease<'_> {
    /// Nobody can tell.
    pub(super) fn take(_: &File) -> Option<WriteLease<'_>> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_seen_for_as_long_as_it_has_it_open() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("x");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        assert!(WriteLease::take(&file).is_some());
        let reader = File::open(&path).unwrap();
        assert!(WriteLease::take(&file).is_none());
        drop(reader);
        assert!(WriteLease::take(&file).is_some());
    }
}
