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
const SOCKET_PATH: usize = 103;

/// What is looked for again is so then.
const MOMENT: Duration = Duration::from_millis(10);

/// So many moments the holder of the lock has to write its pid into it.
const NAMED: u32 = 50;

/// So many moments one that was killed has until all that it held is free: its descriptors are closed one after the
/// other, and what it had just forked has them until it is another program.
const DEAD: u32 = 200;

/// So many one whose socket is still there.
const SERVED: u32 = 20;

/// Held for the daemon's life. Never deleted: a lock on a deleted file excludes nobody.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// # Errors
    /// `NoDaemon` (exit 69) naming the other daemon's pid.
    pub(crate) fn take(path: &Path, root: &Path, socket: &Path) -> Result<Lock, ErrorReport> {
        let io = |verb: &str, error: &std::io::Error| ErrorReport::from_io(verb, path, error);
        let open = File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
        let mut file = open.map_err(|error| io("open", &error))?;
        let mut locked = file.try_lock();
        if matches!(locked, Err(TryLockError::WouldBlock)) && has_ended(holder(&mut file), socket) {
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(runs_already(&mut file, root)),
            Err(TryLockError::Error(error)) => return Err(io("lock", &error)),
        }
        failpoint::hit("instance.locked");
        let pid = std::process::id().to_string();
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
        written.map_err(|error| io("write", &error))?;
        Ok(Lock { _file: file })
    }
}

/// Who holds the lock, as it wrote itself: it does so a moment after it has it, and until then the file has the name of
/// one that is dead, or nobody's. A process that can't be seen from here is named as well, after that moment.
fn named(file: &mut File) -> Option<i32> {
    let lives =
        |pid: &i32| Pid::from_raw(*pid).is_some_and(|pid| pidfd_open(pid, PidfdFlags::empty()).is_ok());
    for _ in 0..NAMED {
        if let Some(pid) = holder(file).filter(lives) {
            return Some(pid);
        }
        moment();
    }
    holder(file)
}

fn moment() {
    poll(&mut [], Timespec::try_from(MOMENT).ok().as_ref()).ok();
}

/// What the file says.
fn holder(file: &mut File) -> Option<i32> {
    let mut pid = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut pid)).ok()?;
    pid.trim().parse().ok()
}

/// A daemon that was just killed holds its lock, and even its socket, for a moment. One whose socket nobody serves is on its
/// way out, and gets longer; or it is on its way in, and once it serves it is there: who waited on would take its place at
/// the next `down`, unasked.
fn has_ended(pid: Option<i32>, socket: &Path) -> bool {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let serves = || UnixStream::connect(socket).is_ok();
    if serves() {
        return ends(&pidfd, SERVED);
    }
    (0..DEAD)
        .find_map(|_| ends(&pidfd, 1).then_some(true).or_else(|| serves().then_some(false)))
        .unwrap_or(false)
}

/// Whether it does within so many moments.
fn ends(pidfd: &OwnedFd, moments: u32) -> bool {
    let span = Timespec::try_from(MOMENT * moments).ok();
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], span.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Takes the lock on the root itself, for daemons whose state lies elsewhere. It is on the very directory that is worked
/// in: whoever works in one that is not at its place any more keeps nobody from the one that is.
///
/// # Errors
/// `NoDaemon` (exit 69).
pub(crate) fn hold(root: &Root) -> Result<(), ErrorReport> {
    for _ in 0..DEAD {
        if root.try_lock().map_err(ErrorReport::from)? {
            return Ok(());
        }
        moment();
    }
    let message =
        format!("cannot supervise {}: a teamd does already, from other directories", root.path().display());
    let hint = "is it one with another XDG_STATE_HOME or XDG_RUNTIME_DIR? find it with: pgrep -a teamd";
    Err(ErrorReport::new(ErrorKind::NoDaemon, message).with_help(hint))
}

fn runs_already(file: &mut File, root: &Path) -> ErrorReport {
    let pid = named(file).map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    let message = format!("cannot supervise {}: a teamd does already, pid {pid}", root.display());
    ErrorReport::new(ErrorKind::NoDaemon, message).with_help("use it, or end it with: teamctl down")
}

/// The socket's path while it is ours.
#[derive(Debug)]
pub(crate) struct Bound {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Bound {
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
pub(crate) fn check_length(path: &Path) -> Result<(), ErrorReport> {
    if path.as_os_str().len() <= SOCKET_PATH {
        return Ok(());
    }
    let message = format!("cannot listen on {}: the path is longer than {SOCKET_PATH} bytes", path.display());
    Err(ErrorReport::new(ErrorKind::Config, message).with_help("choose a shorter one with --socket"))
}

/// Makes the socket's directory; one in which another user could have put something is told before anything starts.
pub(crate) fn check_place(socket: &Path) -> Result<(), ErrorReport> {
    socket.parent().map_or(Ok(()), private_directory)
}

/// Binds the socket. What lies at its path goes if it is a dead daemon's, and only then.
pub(crate) fn listen(path: &Path) -> Result<(UnixListener, Bound), ErrorReport> {
    check_place(path)?;
    let io = |error: std::io::Error| ErrorReport::from_io("listen on", path, &error);
    failpoint::hit("instance.listen");
    remove_dead(path)?;
    failpoint::hit("instance.bind");
    let listener = UnixListener::bind(path).map_err(io)?;
    failpoint::hit("instance.bound");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
    listener.set_nonblocking(true).map_err(io)?;
    let meta = std::fs::symlink_metadata(path).map_err(io)?;
    Ok((listener, Bound { path: path.to_owned(), device: meta.dev(), inode: meta.ino() }))
}

fn remove_dead(path: &Path) -> Result<(), ErrorReport> {
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
fn private_directory(path: &Path) -> Result<(), ErrorReport> {
    let io = |error: std::io::Error| ErrorReport::from_io("make", path, &error);
    if let Some(above) = path.parent() {
        held_by_us(above)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    if let Some(above) = path.parent() {
        held_by_us(above)?;
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
fn held_by_us(directory: &Path) -> Result<(), ErrorReport> {
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
                let second = scope.spawn(|| Lock::take(&path, directory.path(), &socket).unwrap_err());
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
            let waiting = asleep(scope, || has_ended(pid, &socket));
            let served = UnixListener::bind(&socket).unwrap();
            let looked =
                poll(&mut [PollFd::new(&served, PollFlags::IN)], Some(&Timespec { tv_sec: 20, tv_nsec: 0 }));
            assert_eq!(looked, Ok(1), "it is looked whether it serves");
            assert!(!waiting.join().unwrap());
        });
        holder.kill().and_then(|()| holder.wait()).unwrap();
        assert!(has_ended(pid, &socket));
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
        let open = || {
            Root::open(
                &directory.path().join("root"),
                &directory.path().join("aside"),
                store::Durability::Process,
            )
        };
        let (first, second) = (open().unwrap(), open().unwrap());
        hold(&first).unwrap();
        std::thread::scope(|scope| {
            let waiting = asleep(scope, move || hold(&second));
            first.unlock().unwrap();
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_directory_that_others_can_change_holds_none_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let open = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            held_by_us(dir.path())
        };
        for (mode, trusted) in [(0o700, true), (0o755, true), (0o777, false), (0o770, false), (0o1777, true)]
        {
            assert_eq!(open(mode).is_ok(), trusted, "{mode:o}");
        }
        assert!(held_by_us(&dir.path().join("not there")).is_ok());
    }
}
