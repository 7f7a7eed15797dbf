//! Shows the state of a lock to diagnosis commands. An inspection takes no lock and does not wait.

use super::holder_liveness::{HolderProbe, has_sticky_bit, probe_holder};
use super::lock_inode_and_age::{LOCK_STALE_AFTER, LockStamp};
use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::sys::stat::{FileStat, SFlag};
use std::path::PathBuf;

/// The state of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// The lock is free.
    Free,
    /// Another process holds the lock.
    Held(LockInfo),
    /// The lock's holder is dead or has not touched the lock for ten seconds. The next process that
    /// wants the lock takes it over.
    Stale(LockInfo),
    /// The path leads to something that is not an empty directory. No process can take the lock.
    NotALock(PathBuf),
}

/// A lock that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockInfo {
    /// The path of the lock directory.
    pub path: PathBuf,
    /// When the holder last touched the lock, in ms since the epoch.
    pub touched_at: u64,
    /// The inode of the lock directory. The kernel's list of held flocks shows the lock's flock
    /// under this number.
    pub inode: u64,
}

/// The state of the lock of `target`.
pub(crate) fn lock_state(dir: &DirHandle, target: &str) -> Result<LockState, Error> {
    named_lock_state(dir, &format!("{target}.lock"))
}

/// The state of the lock with the file name `name`.
pub(super) fn named_lock_state(dir: &DirHandle, name: &str) -> Result<LockState, Error> {
    let Some(stat) = dir.stat(name)? else { return Ok(LockState::Free) };
    if file_type(&stat) != SFlag::S_IFDIR || is_non_empty(dir, name)? {
        return Ok(LockState::NotALock(dir.join(name)));
    }
    let stamp = LockStamp::from_stat(&stat);
    let touched = (stamp.seconds * 1000 + stamp.nanoseconds / 1_000_000).max(0).unsigned_abs();
    let held = LockInfo { path: dir.join(name), touched_at: touched, inode: stamp.inode };
    Ok(if is_stale(dir, name, &stat, stamp) { LockState::Stale(held) } else { LockState::Held(held) })
}

/// Whether the lock directory has content. False if it is gone.
fn is_non_empty(dir: &DirHandle, name: &str) -> Result<bool, Error> {
    let lock = dir.open_dir(name)?;
    Ok(lock.map(|lock| lock.file_names()).transpose()?.is_some_and(|names| !names.is_empty()))
}

/// Whether the lock is stale. A flock that the check takes is released at once.
fn is_stale(dir: &DirHandle, name: &str, stat: &FileStat, stamp: LockStamp) -> bool {
    match has_sticky_bit(stat).then(|| probe_holder(dir, name, stamp)) {
        Some(HolderProbe::NotAlive(_)) => true,
        Some(HolderProbe::Alive) => false,
        Some(HolderProbe::Unknown) | None => stamp.age() > LOCK_STALE_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkdir_lock::Lock;
    use std::time::UNIX_EPOCH;

    #[test]
    fn the_state_of_a_lock_is_free_held_stale_or_not_a_lock() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let state = || lock_state(&directory, "x.json").unwrap();
        let path = dir.path().join("x.json.lock");
        assert_eq!(state(), LockState::Free);
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        assert!(matches!(state(), LockState::Held(held) if held.path == path && held.touched_at > 0));
        assert!(lock.is_ours().unwrap(), "the inspection does not take the lock");
        drop(lock);
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(state(), LockState::Held(_)), "a fresh lock of another program");
        std::fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert!(matches!(state(), LockState::Stale(held) if held.touched_at == 0));
        drop(std::fs::File::create(path.join("pid")).unwrap());
        assert_eq!(state(), LockState::NotALock(path));
    }
}
