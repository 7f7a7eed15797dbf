//! Renames within one directory: replacing the target, never replacing it, or exchanging two files.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::renameat;

/// Renames `from` to `to` in `dir`. Replaces `to` if it exists.
pub(crate) fn rename(dir: &DirHandle, from: &str, to: &str) -> Result<(), Error> {
    failpoint::hit_before_call("store.rotate")
        .and_then(|()| Ok(renameat(dir, from, dir, to)?))
        .map_err(|cause| Error::io("rename", &dir.join(from), cause))
}

/// Renames `from` to `to` in `dir`. Fails with `EEXIST` if `to` exists.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    match renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => rename_if_absent(dir, from, to),
        result => result,
    }
}

/// Renames `from` to `to` in `dir`. Fails with `EEXIST` if `to` exists. Not atomic on this system.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    rename_if_absent(dir, from, to)
}

/// Exchanges the names of two files in `dir` atomically.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn rename_exchange(dir: &DirHandle, first: &str, second: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    renameat2(dir, first, dir, second, RenameFlags::RENAME_EXCHANGE)
}

/// Always fails: this system has no atomic exchange.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn rename_exchange(_: &DirHandle, _: &str, _: &str) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// Renames a file unless `to` exists, by a check and a rename. Used where the system can't do both
/// in one step. If another program creates `to` between the two steps, the rename replaces that
/// program's file.
fn rename_if_absent(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::AtFlags;
    match nix::sys::stat::fstatat(dir, to, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) => renameat(dir, from, dir, to),
        Err(errno) => Err(errno),
    }
}
