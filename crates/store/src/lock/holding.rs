//! A look at a lock from aside, for whoever asks why nothing moves: it takes nothing, and waits for nobody.

use super::grip::{Reached, is_marked, reach};
use super::{STALE, Stamp};
use crate::directory::{Directory, file_type};
use crate::error::Error;
use nix::sys::stat::{FileStat, SFlag};
use std::path::PathBuf;

/// What stands at a lock's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Nothing: it is free.
    Free,
    /// A lock that somebody holds.
    Held(Held),
    /// A lock whose holder is dead, or has not touched it for ten seconds: whoever comes next takes it.
    Abandoned(Held),
    /// No lock of the usual kind: nobody gets past it.
    Odd(PathBuf),
}

/// A lock that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Where.
    pub path: PathBuf,
    /// When its holder touched it last, ms since the epoch.
    pub touched: u64,
    /// Its inode, by which the kernel names who of ours has a grip on it.
    pub inode: u64,
}

/// How the lock of `target` stands.
pub(crate) fn holding(dir: &Directory, target: &str) -> Result<Holding, Error> {
    at(dir, &format!("{target}.lock"))
}

/// The same of the lock of that name.
pub(super) fn at(dir: &Directory, name: &str) -> Result<Holding, Error> {
    let Some(stat) = dir.stat(name)? else { return Ok(Holding::Free) };
    if file_type(&stat) != SFlag::S_IFDIR || is_full(dir, name)? {
        return Ok(Holding::Odd(dir.join(name)));
    }
    let stamp = Stamp::of(&stat);
    let touched = (stamp.seconds * 1000 + stamp.nanoseconds / 1_000_000).max(0).unsigned_abs();
    let held = Held { path: dir.join(name), touched, inode: stamp.inode };
    Ok(if is_dead(dir, name, &stat, stamp) { Holding::Abandoned(held) } else { Holding::Held(held) })
}

/// One that has gone meanwhile is not.
fn is_full(dir: &Directory, name: &str) -> Result<bool, Error> {
    let lock = dir.sub(name)?;
    Ok(lock.map(|lock| lock.names()).transpose()?.is_some_and(|names| !names.is_empty()))
}

/// A grip that was got is let go of at once.
fn is_dead(dir: &Directory, name: &str, stat: &FileStat, stamp: Stamp) -> bool {
    match is_marked(stat).then(|| reach(dir, name, stamp)) {
        Some(Reached::Got(_)) => true,
        Some(Reached::Held) => false,
        Some(Reached::Unknown) | None => stamp.age() > STALE,
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
        let directory = Directory::open(dir.path()).unwrap();
        let look = || holding(&directory, "x.json").unwrap();
        let path = dir.path().join("x.json.lock");
        assert_eq!(look(), Holding::Free);
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        assert!(matches!(look(), Holding::Held(held) if held.path == path && held.touched > 0));
        assert!(lock.is_ours().unwrap(), "a look takes nothing");
        drop(lock);
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(look(), Holding::Held(_)), "another's, and fresh");
        std::fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert!(matches!(look(), Holding::Abandoned(held) if held.touched == 0));
        drop(std::fs::File::create(path.join("pid")).unwrap());
        assert_eq!(look(), Holding::Odd(path));
    }
}
