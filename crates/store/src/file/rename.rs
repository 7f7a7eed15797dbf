//! Renames within one directory: onto a file, never onto a file, or two files for each other.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::renameat;

/// Renames within `dir`, onto what is there.
pub(crate) fn rename(dir: &DirHandle, from: &str, to: &str) -> Result<(), Error> {
    failpoint::hit_before_call("store.rotate")
        .and_then(|()| Ok(renameat(dir, from, dir, to)?))
        .map_err(|cause| Error::io("rename", &dir.join(from), cause))
}

/// Renames within `dir`, never onto something.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    match renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => rename_if_absent(dir, from, to),
        done => done,
    }
}

/// Renames within `dir`, never onto something that is there at the look before.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    rename_if_absent(dir, from, to)
}

/// Has two files in `dir` change their names in one step.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn rename_exchange(dir: &DirHandle, one: &str, other: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    renameat2(dir, one, dir, other, RenameFlags::RENAME_EXCHANGE)
}

/// Not to be had here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn rename_exchange(_: &DirHandle, _: &str, _: &str) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// For file systems without the exclusive rename: the callers' locks keep others out between the two steps.
fn rename_if_absent(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::AtFlags;
    match nix::sys::stat::fstatat(dir, to, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) => renameat(dir, from, dir, to),
        Err(errno) => Err(errno),
    }
}
