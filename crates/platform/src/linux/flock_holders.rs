//! Finds the processes that hold a flock.

/// The inodes on which a process holds a flock, from /proc/PID/fdinfo. Each file in that directory
/// describes one open file of the process and its locks. `/proc/locks` has the same locks, but the
/// kernel returns that file in pieces. If locks change between two pieces, a reader can miss some.
pub(super) fn locked_inodes(pid: u32) -> Vec<u64> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let locks = texts.flat_map(|text| text.lines().filter_map(parse_flock).collect::<Vec<_>>());
    locks.filter(|lock| lock.pid == pid).map(|lock| lock.inode).collect()
}

/// Finds the process in `/proc/locks`, which has the locks of all processes.
pub(super) fn lock_holder(inode: u64) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().filter_map(parse_flock).find(|lock| lock.inode == inode).map(|lock| lock.pid)
}

struct HeldFlock {
    pid: u32,
    inode: u64,
}

/// Parses a line such as `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF` (proc_locks(5)). In
/// /proc/PID/fdinfo, such a line begins with `lock:`. `None` for a lock of another kind, and for a
/// process that only waits for a lock.
fn parse_flock(line: &str) -> Option<HeldFlock> {
    let fields: Vec<&str> = line.trim_start_matches("lock:").split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, file, ..] = *fields else { return None };
    Some(HeldFlock { pid: pid.parse().ok()?, inode: file.rsplit(':').next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn held_flocks_are_parsed() {
        let parse = |line| parse_flock(line).map(|lock| (lock.pid, lock.inode));
        assert_eq!(parse("1: FLOCK  ADVISORY  WRITE 70 08:02:11 0 EOF"), Some((70, 11)));
        assert_eq!(parse("lock:\t1: FLOCK  ADVISORY  READ  70 00:1f:14 0 EOF"), Some((70, 14)));
        for line in [
            "2: POSIX  ADVISORY  WRITE 70 08:02:12 0 EOF",
            "2: -> FLOCK  ADVISORY  WRITE 71 08:02:13 0 EOF",
            "",
        ] {
            assert_eq!(parse(line), None);
        }
    }

    #[test]
    fn flock_of_an_open_file_is_found() {
        let file = tempfile::tempfile().unwrap();
        let inode = file.metadata().unwrap().ino();
        let is_locked = || locked_inodes(std::process::id()).contains(&inode);
        assert!(!is_locked());
        file.lock().unwrap();
        assert!(is_locked());
    }
}
