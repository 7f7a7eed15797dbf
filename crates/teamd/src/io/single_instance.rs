//! One daemon per root: a lock that the kernel frees with its holder, and the socket behind it.

use protocol::error::{ErrorKind, ErrorReport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Root;

/// The longest path that a socket can have, on Linux; macOS takes 103.
const MAX_SOCKET_PATH: usize = 103;

/// What is looked for again is so then.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// So many moments the holder of the lock has to write its pid into it.
const HOLDER_PID_POLLS: u32 = 50;

/// So many moments one that was killed has until all that it held is free: its descriptors are closed one after the
/// other, and what it had just forked has them until it is another program.
const DEAD_HOLDER_POLLS: u32 = 200;

/// So many one whose socket is still there.
const SERVING_HOLDER_POLLS: u32 = 20;

/// Held for the daemon's life. Never deleted: a lock on a deleted file excludes nobody.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    _file: File,
}

impl InstanceLock {
    /// # Errors
    /// `NoDaemon` (exit 69) naming the other daemon's pid.
    pub(crate) fn acquire(path: &Path, root: &Path, socket: &Path) -> Result<InstanceLock, ErrorReport> {
        let io = |verb: &str, error: &std::io::Error| ErrorReport::from_io(verb, path, error);
        let open = File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
        let mut file = open.map_err(|error| io("open", &error))?;
        let mut locked = file.try_lock();
        if matches!(locked, Err(TryLockError::WouldBlock))
            && has_holder_exited(read_holder_pid(&mut file), socket)
        {
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(already_running_error(&mut file, root)),
            Err(TryLockError::Error(error)) => return Err(io("lock", &error)),
        }
        failpoint::hit("instance.locked");
        let pid = std::process::id().to_string();
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
        written.map_err(|error| io("write", &error))?;
        Ok(InstanceLock { _file: file })
    }
}

/// Who holds the lock, as it wrote itself: it does so a moment after it has it, and until then the file has the name of
/// one that is dead, or nobody's. A process that can't be seen from here is named as well, after that moment.
fn wait_for_holder_pid(file: &mut File) -> Option<i32> {
    let lives =
        |pid: &i32| Pid::from_raw(*pid).is_some_and(|pid| pidfd_open(pid, PidfdFlags::empty()).is_ok());
    for _ in 0..HOLDER_PID_POLLS {
        if let Some(pid) = read_holder_pid(file).filter(lives) {
            return Some(pid);
        }
        wait_briefly();
    }
    read_holder_pid(file)
}

fn wait_briefly() {
    poll(&mut [], Timespec::try_from(POLL_INTERVAL).ok().as_ref()).ok();
}

/// What the file says.
fn read_holder_pid(file: &mut File) -> Option<i32> {
    let mut pid = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut pid)).ok()?;
    pid.trim().parse().ok()
}

/// A daemon that was just killed holds its lock, and even its socket, for a moment. One whose socket nobody serves is on its
/// way out, and gets longer; or it is on its way in, and once it serves it is there: who waited on would take its place at
/// the next `down`, unasked.
fn has_holder_exited(pid: Option<i32>, socket: &Path) -> bool {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let serves = || UnixStream::connect(socket).is_ok();
    if serves() {
        return exits_within(&pidfd, SERVING_HOLDER_POLLS);
    }
    (0..DEAD_HOLDER_POLLS)
        .find_map(|_| exits_within(&pidfd, 1).then_some(true).or_else(|| serves().then_some(false)))
        .unwrap_or(false)
}

/// Whether it does within so many moments.
fn exits_within(pidfd: &OwnedFd, moments: u32) -> bool {
    let span = Timespec::try_from(POLL_INTERVAL * moments).ok();
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], span.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Takes the lock on the root itself, for daemons whose state lies elsewhere. It is on the very directory that is worked
/// in: whoever works in one that is not at its place any more keeps nobody from the one that is.
///
/// # Errors
/// `NoDaemon` (exit 69).
pub(crate) fn lock_root(root: &Root) -> Result<(), ErrorReport> {
    for _ in 0..DEAD_HOLDER_POLLS {
        if root.try_lock().map_err(ErrorReport::from)? {
            return Ok(());
        }
        wait_briefly();
    }
    let message =
        format!("cannot supervise {}: a teamd does already, from other directories", root.path().display());
    let hint = "is it one with another XDG_STATE_HOME or XDG_RUNTIME_DIR? find it with: pgrep -a teamd";
    Err(ErrorReport::new(ErrorKind::NoDaemon, message).with_help(hint))
}

fn already_running_error(file: &mut File, root: &Path) -> ErrorReport {
    let pid = wait_for_holder_pid(file).map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    let message = format!("cannot supervise {}: a teamd does already, pid {pid}", root.display());
    ErrorReport::new(ErrorKind::NoDaemon, message).with_help("use it, or end it with: teamctl down")
}

/// The socket's path while it is ours.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl BoundSocket {
    /// Removes it, unless another's lies there by now.
    pub(crate) fn remove(&self) {
        let ours = |meta: &Metadata| meta.dev() == self.device && meta.ino() == self.inode;
        if std::fs::symlink_metadata(&self.path).as_ref().is_ok_and(ours) {
            failpoint::hit("instance.unbind");
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// A longer path than a socket can have is told before anything is made.
pub(crate) fn check_path_length(path: &Path) -> Result<(), ErrorReport> {
    if path.as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok(());
    }
    let message =
        format!("cannot listen on {}: the path is longer than {MAX_SOCKET_PATH} bytes", path.display());
    Err(ErrorReport::new(ErrorKind::Config, message).with_help("choose a shorter one with --socket"))
}

/// Makes the socket's directory; one in which another user could have put something is told before anything starts.
pub(crate) fn check_socket_directory(socket: &Path) -> Result<(), ErrorReport> {
    socket.parent().map_or(Ok(()), make_private_directory)
}

/// Binds the socket. What lies at its path goes if it is a dead daemon's, and only then.
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, BoundSocket), ErrorReport> {
    check_socket_directory(path)?;
    let io = |error: std::io::Error| ErrorReport::from_io("listen on", path, &error);
    failpoint::hit("instance.listen");
    remove_stale_socket(path)?;
    failpoint::hit("instance.bind");
    let listener = UnixListener::bind(path).map_err(io)?;
    failpoint::hit("instance.bound");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
    listener.set_nonblocking(true).map_err(io)?;
    let meta = std::fs::symlink_metadata(path).map_err(io)?;
    Ok((listener, BoundSocket { path: path.to_owned(), device: meta.dev(), inode: meta.ino() }))
}

fn remove_stale_socket(path: &Path) -> Result<(), ErrorReport> {
    let refused =
        |kind, why: &str| ErrorReport::new(kind, format!("cannot listen on {}: {why}", path.display()));
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(meta) if !meta.file_type().is_socket() => {
            Err(refused(ErrorKind::AlreadyExists, "something that is no socket is there"))
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(refused(ErrorKind::NoDaemon, "a daemon listens there already"))
        }
        Ok(_) => std::fs::remove_file(path).map_err(|error| refused(ErrorKind::Io, &error.to_string())),
    }
}

/// Makes the directory, or makes sure that nobody else can have put something into it, or another in its place.
fn make_private_directory(path: &Path) -> Result<(), ErrorReport> {
    let io = |error: std::io::Error| ErrorReport::from_io("make", path, &error);
    if let Some(above) = path.parent() {
        check_parent_directory(above)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    if let Some(above) = path.parent() {
        check_parent_directory(above)?;
    }
    let meta = std::fs::symlink_metadata(path).map_err(io)?;
    let ours = meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if ours {
        return Ok(());
    }
    let message = format!("cannot trust {}: it must be a directory of yours with mode 0700", path.display());
    Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help(format!("chmod 700 {}", path.display())))
}

/// In `/tmp` anybody may make the directory that ours goes into, before us: then ours could be taken away and another
/// put there. What is ours or root's will do, unless everybody may write there as they like.
fn check_parent_directory(directory: &Path) -> Result<(), ErrorReport> {
    let Ok(meta) = std::fs::symlink_metadata(directory) else { return Ok(()) };
    let owned = [0, nix::unistd::geteuid().as_raw()].contains(&meta.uid());
    let sticky = meta.mode() & 0o1000 != 0;
    if owned && (meta.is_symlink() || sticky || meta.mode() & 0o022 == 0) {
        return Ok(());
    }
    let shown = directory.display();
    let message = format!("cannot trust {shown}: others can put what they like there");
    let hint = format!("see whose it is: ls -ld {shown}; or choose a place of your own: XDG_RUNTIME_DIR");
    Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_has_not_written_itself_yet_is_waited_for_and_no_dead_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let (path, socket) = (directory.path().join("teamd.lock"), directory.path().join("s"));
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let mut first = File::create(&path).unwrap();
        first.lock().unwrap();
        for before in [String::new(), dead.id().to_string()] {
            first.set_len(0).and_then(|()| first.rewind()).unwrap();
            first.write_all(before.as_bytes()).unwrap();
            let refused = std::thread::scope(|scope| {
                let second =
                    scope.spawn(|| InstanceLock::acquire(&path, directory.path(), &socket).unwrap_err());
                while !second.is_finished() && !opened_twice(&path) {
                    std::thread::yield_now();
                }
                first.set_len(0).and_then(|()| first.rewind()).unwrap();
                first.write_all(std::process::id().to_string().as_bytes()).unwrap();
                second.join().unwrap()
            });
            let (kind, me) = (refused.kind, std::process::id());
            assert_eq!(kind, ErrorKind::NoDaemon);
            assert!(refused.message.ends_with(&format!(", pid {me}")), "{}", refused.message);
        }
    }

    /// We have it open, and somebody else here.
    fn opened_twice(path: &Path) -> bool {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path)).count() > 1
    }

    #[test]
    fn whoever_begins_to_serve_is_waited_for_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut holder = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(holder.id()).ok();
        std::thread::scope(|scope| {
            let waiting = asleep(scope, || has_holder_exited(pid, &socket));
            let served = UnixListener::bind(&socket).unwrap();
            let looked =
                poll(&mut [PollFd::new(&served, PollFlags::IN)], Some(&Timespec { tv_sec: 20, tv_nsec: 0 }));
            assert_eq!(looked, Ok(1), "it is looked whether it serves");
            assert!(!waiting.join().unwrap());
        });
        holder.kill().and_then(|()| holder.wait()).unwrap();
        assert!(has_holder_exited(pid, &socket));
    }

    /// Does it on a thread, and waits until that sleeps.
    fn asleep<'a, T: Send + 'a>(
        scope: &'a std::thread::Scope<'a, '_>,
        act: impl FnOnce() -> T + Send + 'a,
    ) -> std::thread::ScopedJoinHandle<'a, T> {
        let (tell, told) = std::sync::mpsc::channel();
        let acting = scope.spawn(move || {
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            act()
        });
        let stat = Path::new("/proc").join(told.recv().unwrap()).join("stat");
        // Nothing but that makes it sleep.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") S ")) {
            std::thread::yield_now();
        }
        acting
    }

    #[test]
    fn a_root_that_somebody_lets_go_of_in_a_moment_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let open =
            || Root::open(&directory.path().join("root"), directory.path(), store::Durability::Process);
        let (first, second) = (open().unwrap(), open().unwrap());
        lock_root(&first).unwrap();
        std::thread::scope(|scope| {
            let waiting = asleep(scope, move || lock_root(&second));
            first.unlock().unwrap();
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_directory_that_others_can_change_holds_none_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let open = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            check_parent_directory(dir.path())
        };
        for (mode, trusted) in [(0o700, true), (0o755, true), (0o777, false), (0o770, false), (0o1777, true)]
        {
            assert_eq!(open(mode).is_ok(), trusted, "{mode:o}");
        }
        assert!(check_parent_directory(&dir.path().join("not there")).is_ok());
    }
}
