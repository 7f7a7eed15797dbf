//! Finds the control socket of a running daemon from any environment of the same user.
//!
//! The path of the socket depends on `$XDG_RUNTIME_DIR`, which cron, `su`, ssh commands and system
//! services set differently or not at all. So if there is no socket where this process expects it,
//! the lock file of the daemon names the socket.

use crate::connection::Connection;
use crate::error::Error;
use protocol::directories::Directories;
use protocol::lock_holder::LockHolder;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The socket at which a daemon of `root` listens, other than the one in the runtime directory of
/// this environment. Looks at these places, in this order:
///
/// 1. the socket that the lock file in the state directory of this environment names;
/// 2. the process that holds the lock on `teams` of the root: the socket that its lock file names.
///    This finds a daemon with another state directory.
pub fn find_other_socket(root: &Path, directories: &Directories) -> Option<PathBuf> {
    let lock_file = directories.state_dir.join(LockHolder::FILE_NAME);
    let other = named_socket(&lock_file).or_else(|| socket_of_root_holder(root, directories));
    other.filter(|socket| *socket != directories.control_socket())
}

/// The socket that a lock file names, if a daemon listens there. A daemon whose process is stopped
/// listens too.
fn named_socket(lock_file: &Path) -> Option<PathBuf> {
    let holder = LockHolder::parse(&std::fs::read(lock_file).ok()?)?;
    let connected = Connection::open_without_blocking(&holder.socket);
    matches!(connected, Ok(_) | Err(Error::Unresponsive(_))).then_some(holder.socket)
}

/// The socket of the process that holds the lock on the directory `teams` of the root.
fn socket_of_root_holder(root: &Path, directories: &Directories) -> Option<PathBuf> {
    let inode = std::fs::metadata(root.join("teams")).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    holders(&locks, inode).into_iter().find_map(|pid| {
        let open_files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let paths = open_files.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        // The name of a state directory is a hash of the root, so the lock file is of this root.
        let is_of_root =
            |path: &Path| path.parent().and_then(Path::file_name) == directories.state_dir.file_name();
        let mut lock_files = paths.filter(|path| path.ends_with(LockHolder::FILE_NAME) && is_of_root(path));
        lock_files.find_map(|lock_file| named_socket(&lock_file))
    })
}

/// The pids that hold a flock on a file with this inode. `locks` is the content of `/proc/locks`.
fn holders(locks: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = words[..] else { return None };
        (file.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok()).flatten()
    };
    locks.lines().filter_map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lock_file_names_the_socket_of_a_living_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let directories = Directories { runtime_dir: path("run"), state_dir: path("state") };
        for name in ["run", "state", "other", "root"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let find = || find_other_socket(&path("root"), &directories);
        let write = |socket: PathBuf| {
            let text = LockHolder { pid: 1, socket }.to_bytes();
            std::fs::File::create(path("state/teamd.lock")).unwrap().write_all(&text).unwrap();
        };
        assert_eq!(find(), None);
        let listener = UnixListener::bind(path("other/s")).unwrap();
        write(path("gone"));
        assert_eq!(find(), None);
        write(path("other/s"));
        assert_eq!(find(), Some(path("other/s")));
        drop(listener);
        assert_eq!(find(), None, "nothing listens there any more");
    }

    #[test]
    fn holders_of_a_flock_are_parsed() {
        let locks = "1: FLOCK  ADVISORY  WRITE 42 fe:00:77 0 EOF\n2: POSIX  ADVISORY  WRITE 43 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 44 fe:00:78 0 EOF\n";
        assert_eq!(holders(locks, 77), [42]);
    }
}
