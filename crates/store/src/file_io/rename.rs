//! Renames within one directory: replacing the target, never replacing it, or exchanging two files.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::renameat;
use std::os::fd::AsFd;

/// Renames `from` to `to` in `dir`. Replaces `to` if it exists.
pub(crate) fn rename(dir: &DirHandle, from: &str, to: &str) -> Result<(), Error> {
    failpoint::hit_before_call("store.rotate")
        .and_then(|()| Ok(renameat(dir, from, dir, to)?))
        .map_err(|cause| Error::io("rename", &dir.join(from), cause))
}

/// Renames `from` to `to` in `dir`. Fails with `EEXIST` if `to` exists.
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    match platform::system().rename_if_absent(dir.as_fd(), from, to).map_err(to_errno) {
        Err(Errno::EINVAL | Errno::ENOSYS) => check_and_rename(dir, from, to),
        result => result,
    }
}

/// Exchanges the names of two files in `dir` atomically.
///
/// # Errors
///
/// `ENOSYS` if the system cannot exchange names. The error of the kernel, such as `EINVAL`, if the
/// file system cannot.
pub(super) fn rename_exchange(dir: &DirHandle, first: &str, second: &str) -> nix::Result<()> {
    platform::system().exchange_names(dir.as_fd(), first, second).map_err(to_errno)
}

/// An error without a number says that the system has no such call.
fn to_errno(error: std::io::Error) -> Errno {
    Errno::try_from(error).unwrap_or(Errno::ENOSYS)
}

/// Checks that `to` does not exist, and then renames `from` to `to`. Used if the system or the file
/// system can't do both in one step. If another program creates `to` after the check, the rename
/// replaces that program's file.
fn check_and_rename(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::AtFlags;
    match nix::sys::stat::fstatat(dir, to, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) => renameat(dir, from, dir, to),
        Err(errno) => Err(errno),
    }
}
