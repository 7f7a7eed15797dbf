//! A look at a lock from aside, for whoever asks why nothing moves: it takes nothing, and waits for nobody.

use super::holder_liveness::{HolderProbe, has_sticky_bit, probe_holder};
use super::stamp::{LOCK_STALE_AFTER, LockStamp};
use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::sys::stat::{FileStat, SFlag};
use std::path::PathBuf;

/// What stands at a lock's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// Nothing: it is free.
    Free,
    /// A lock that somebody holds.
    Held(LockInfo),
    /// A lock whose holder is dead, or has not touched it for ten seconds: whoever comes next takes it.
    Stale(LockInfo),
    /// No lock of the usual kind: nobody gets past it.
    NotALock(PathBuf),
}

/// A lock that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockInfo {
    /// Where.
    pub path: PathBuf,
    /// When its holder touched it last, ms since the epoch.
    pub touched_at: u64,
    /// Its inode, by which the kernel names who of ours has a grip on it.
    pub inode: u64,
}

/// How the lock of `target` stands.
pub(crate) fn lock_state(dir: &DirHandle, target: &str) -> Result<LockState, Error> {
    named_lock_state(dir, &format!("{target}.lock"))
}

/// The same of the lock of that name.
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

/// One that has gone meanwhile is not.
fn is_non_empty(dir: &DirHandle, name: &str) -> Result<bool, Error> {
    let lock = dir.open_dir(name)?;
    Ok(lock.map(|lock| lock.file_names()).transpose()?.is_some_and(|names| !names.is_empty()))
}

/// A grip that was got is let go of at once.
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
    use crate::lock::Lock;
    use std::time::UNIX_EPOCH;

    #[test]
    fn who_holds_a_lock_lives_is_dead_or_is_no_lock_at_all() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let look = || lock_state(&directory, "x.json").unwrap();
        let path = dir.path().join("x.json.lock");
        assert_eq!(look(), LockState::Free);
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        assert!(matches!(look(), LockState::Held(held) if held.path == path && held.touched_at > 0));
        assert!(lock.is_ours().unwrap(), "a look takes nothing");
        drop(lock);
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(look(), LockState::Held(_)), "another's, and fresh");
        std::fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert!(matches!(look(), LockState::Stale(held) if held.touched_at == 0));
        drop(std::fs::File::create(path.join("pid")).unwrap());
        assert_eq!(look(), LockState::NotALock(path));
    }
}
