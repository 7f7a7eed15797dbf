//! Write leases, which show whether another process has a file open.
//!
//! The kernel grants a write lease only if the file is open exactly once. While the lease is held,
//! every other `open` of the file waits. Leases are unreliable on network file systems, where
//! another machine may have the file open, and on layered file systems, where another layer may. So
//! leases are used only on file systems that [`super::multigrain_timestamps`] knows.
//!
//! The module has one `unsafe` call, because no library wraps `F_SETLEASE`.

#![allow(unsafe_code)]

use std::fs::File;

/// A write lease that this process holds: no other descriptor refers to the file. Dropping the
/// lease lets waiting `open` calls continue.
#[derive(Debug)]
pub(super) struct WriteLease<'f>(&'f File);

#[cfg(target_os = "linux")]
impl WriteLease<'_> {
    /// Takes a write lease on `file`, which must be open for reading and writing. `None` if any
    /// process has another descriptor of the file.
    pub(super) fn take(file: &File) -> Option<WriteLease<'_>> {
        use nix::libc::{F_SETLEASE, F_WRLCK, SIGURG, c_int};

        /// The value in `fcntl(2)`; `libc` does not define it.
        const F_SETSIG: c_int = 10;
        // The kernel sends a signal when another process opens the leased file. The default signal,
        // SIGIO, would end this process. SIGURG has no effect.
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
    // SAFETY: the commands `F_SETSIG` and `F_SETLEASE` take an integer argument, and the descriptor
    // is open as long as `file` is borrowed.
    unsafe { nix::libc::fcntl(file.as_raw_fd(), command, to) == 0 }
}

#[cfg(not(target_os = "linux"))]
impl WriteLease<'_> {
    /// Always `None`: this system has no write leases.
    pub(super) fn take(_: &File) -> Option<WriteLease<'_>> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn no_lease_is_granted_while_a_reader_has_the_file_open() {
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
