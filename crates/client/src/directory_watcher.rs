//! Waiting for files to change: the one place where verbs, and the screen, block on the file system.
//!
//! Directories are watched, never files: a file's watch dies at the first rename. The caller arms first,
//! then looks, then waits; what happens between arming and looking wakes it, so nothing is missed. A wake
//! says "look", never what changed. A directory that is missing, or goes and comes again, is waited for
//! through the nearest one above it.

use crate::stdout_closed::poll_output_closed;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use protocol::error::{ErrorKind, ErrorReport};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Events get lost on some file systems; this often there is a look without one.
const RESCAN_INTERVAL: Duration = Duration::from_secs(30);

/// Why the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something may have changed: look.
    Changed,
    /// The deadline is over, or nothing was told for long: see `DirectoryWatcher::wait_at_least_until`.
    TimedOut,
    /// Nobody reads our output any more.
    OutputClosed,
}

/// Watches directories for as long as it lives.
#[derive(Debug)]
pub struct DirectoryWatcher {
    watcher: RecommendedWatcher,
    sender: Sender<WatchEvent>,
    events: Receiver<WatchEvent>,
    /// The watcher has told of a change that nobody has looked at yet: of a storm one is enough.
    change_pending: Arc<AtomicBool>,
    armed: Vec<WatchedDirectory>,
}

/// Wakes whoever waits, from another thread.
#[derive(Debug, Clone)]
pub struct WatchNotifier(Sender<WatchEvent>);

impl WatchNotifier {
    /// Look!
    pub fn notify(&self) {
        // Nobody waits any more: the process is about to end.
        self.0.send(WatchEvent::Changed).ok();
    }

    /// Look once that process has ended, too. Where it can't be watched, nothing is told.
    pub fn notify_on_exit(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
        let teller = self.clone();
        std::thread::spawn(move || {
            let mut ended = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            while poll(&mut ended, PollTimeout::NONE).is_err() {}
            teller.notify();
        });
    }
}

/// One wanted directory, and what is watched for it now.
#[derive(Debug)]
struct WatchedDirectory {
    wanted: PathBuf,
    watched: DirectoryId,
}

/// A directory that exists: the same path with another inode is another one.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryId {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DirectoryWatcher {
    /// Arms `directories`, which are absolute and need not exist.
    pub fn new(directories: &[PathBuf]) -> Result<DirectoryWatcher, ErrorReport> {
        let (sender, wakes) = channel();
        let (tell, told) = (sender.clone(), Arc::new(AtomicBool::new(false)));
        let already = Arc::clone(&told);
        let watcher = notify::recommended_watcher(move |event| {
            if is_change(&event) && !already.swap(true, Ordering::AcqRel) {
                // Nobody waits any more: the process is about to end.
                tell.send(WatchEvent::Changed).ok();
            }
        });
        let mut watcher = watcher.map_err(|error| watch_error(Path::new("any directory"), &error))?;
        let arm = |wanted: &PathBuf| {
            Ok(WatchedDirectory { wanted: wanted.clone(), watched: watch_nearest(&mut watcher, wanted)? })
        };
        let armed = directories.iter().map(arm).collect::<Result<_, ErrorReport>>()?;
        Ok(DirectoryWatcher { watcher, sender, events: wakes, change_pending: told, armed })
    }

    /// The same, for a stream: it also ends when nobody reads stdout any more.
    pub fn new_for_stream(directories: &[PathBuf]) -> Result<DirectoryWatcher, ErrorReport> {
        let follow = DirectoryWatcher::new(directories)?;
        let tell = follow.sender.clone();
        // It waits for the hang-up alone, and ends with the process where none comes.
        std::thread::spawn(move || {
            if poll_output_closed(PollTimeout::NONE) {
                tell.send(WatchEvent::OutputClosed).ok();
            }
        });
        Ok(follow)
    }

    /// For another thread: what it tells is one more reason to look.
    pub fn notifier(&self) -> WatchNotifier {
        WatchNotifier(self.sender.clone())
    }

    /// Waits until something changes, or for ever without a deadline. Several changes may be one wake.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<WatchEvent, ErrorReport> {
        let seen = self.wait_and_drain(deadline);
        if seen == WatchEvent::Changed {
            self.update_watches()?;
        }
        Ok(seen)
    }

    /// As `DirectoryWatcher::next` without a deadline, but no earlier than `earliest`, for who would look too often: all that
    /// changes until then is one wake. The look that comes without one is told as `WatchEvent::TimedOut`.
    pub fn wait_at_least_until(&mut self, earliest: Instant) -> Result<WatchEvent, ErrorReport> {
        let mut seen = self.events.recv_timeout(RESCAN_INTERVAL).unwrap_or(WatchEvent::TimedOut);
        while seen == WatchEvent::Changed
            && let Some(left) = earliest.checked_duration_since(Instant::now())
        {
            match self.events.recv_timeout(left) {
                Ok(next) => seen = next,
                Err(_) => break,
            }
        }
        let seen = self.drain(seen);
        self.update_watches()?;
        Ok(seen)
    }

    fn wait_and_drain(&self, deadline: Option<Instant>) -> WatchEvent {
        self.drain(self.wait_once(deadline))
    }

    fn wait_once(&self, deadline: Option<Instant>) -> WatchEvent {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match self.events.recv_timeout(left.unwrap_or(RESCAN_INTERVAL).min(RESCAN_INTERVAL)) {
            Ok(seen) => seen,
            Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= RESCAN_INTERVAL) => {
                WatchEvent::TimedOut
            }
            Err(_) => WatchEvent::Changed,
        }
    }

    /// A burst is one wake, unless the hang-up is in it. The next change is told anew only once what was told is taken
    /// out: else its word would go with the others, and none would follow.
    fn drain(&self, first: WatchEvent) -> WatchEvent {
        let hung_up = self.events.try_iter().any(|seen| seen == WatchEvent::OutputClosed);
        self.change_pending.store(false, Ordering::Release);
        if hung_up { WatchEvent::OutputClosed } else { first }
    }

    /// Follows what was made, removed or replaced on the way to a wanted directory.
    fn update_watches(&mut self) -> Result<(), ErrorReport> {
        for armed in &mut self.armed {
            if nearest_directory(&armed.wanted).as_ref() != Some(&armed.watched) {
                armed.watched = watch_nearest(&mut self.watcher, &armed.wanted)?;
            }
        }
        Ok(())
    }
}

/// Watches `wanted`, or the nearest directory above that exists; again if that changed meanwhile.
fn watch_nearest(watcher: &mut RecommendedWatcher, wanted: &Path) -> Result<DirectoryId, ErrorReport> {
    loop {
        let place = nearest_directory(wanted).ok_or_else(|| {
            ErrorReport::new(
                ErrorKind::MissingPath,
                format!("cannot watch {}: nothing above it exists", wanted.display()),
            )
        })?;
        // The kernel tells of a directory's own end only when nobody holds it open, and our store does; the
        // one above it tells at once. That one may be another's: then the slow look is all there is.
        if let Some(above) = place.path.parent() {
            watcher.watch(above, RecursiveMode::NonRecursive).ok();
        }
        let watched = watcher.watch(&place.path, RecursiveMode::NonRecursive);
        if nearest_directory(wanted).as_ref() != Some(&place) {
            continue;
        }
        watched.map_err(|error| watch_error(&place.path, &error))?;
        return Ok(place);
    }
}

fn nearest_directory(wanted: &Path) -> Option<DirectoryId> {
    wanted.ancestors().find_map(|path| {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
        Some(DirectoryId { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    })
}

fn watch_error(path: &Path, error: &notify::Error) -> ErrorReport {
    ErrorReport::from_io("watch", path, error)
        .with_help("see whether the system's limits are too low: teamctl doctor")
}

/// Our own reading is seen too, and must not wake us; a lost event is as good as one.
fn is_change(event: &notify::Result<notify::Event>) -> bool {
    let Ok(event) = event else { return true };
    match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir, remove_dir};

    fn soon_deadline() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn write_wakes_and_read_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let mut follow = DirectoryWatcher::new(&[dir.path().to_owned()]).unwrap();
        drop(File::create(&file).unwrap());
        assert_eq!(follow.wait(soon_deadline()).unwrap(), WatchEvent::Changed);
        // By its kind, not by waiting for what must not come.
        let kind = |kind| is_change(&Ok(notify::Event::new(EventKind::Access(kind))));
        assert!(kind(AccessKind::Close(AccessMode::Write)));
        assert!(!kind(AccessKind::Open(AccessMode::Any)) && !kind(AccessKind::Close(AccessMode::Read)));
    }

    #[test]
    fn no_change_is_missed_and_the_interval_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut follow = DirectoryWatcher::new(&[dir.path().to_owned()]).unwrap();
        for round in 0..50 {
            for n in 0..20 {
                drop(File::create(dir.path().join(format!("{round}-{n}"))).unwrap());
            }
            assert_eq!(follow.wait(soon_deadline()).unwrap(), WatchEvent::Changed, "{round}");
        }
        let earliest = Instant::now() + Duration::from_millis(50);
        drop(File::create(dir.path().join("last")).unwrap());
        assert_eq!(follow.wait_at_least_until(earliest).unwrap(), WatchEvent::Changed);
        assert!(Instant::now() >= earliest);
    }

    #[test]
    fn late_and_recreated_directories_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("x/y");
        let mut follow = DirectoryWatcher::new(std::slice::from_ref(&wanted)).unwrap();
        let until = |follow: &mut DirectoryWatcher, path: &Path| {
            while follow.armed[0].watched.path != path {
                assert_eq!(follow.wait(soon_deadline()).unwrap(), WatchEvent::Changed);
            }
        };
        create_dir(dir.path().join("x")).unwrap();
        until(&mut follow, &dir.path().join("x"));
        create_dir(&wanted).unwrap();
        until(&mut follow, &wanted);
        let held = File::open(&wanted).unwrap();
        remove_dir(&wanted).unwrap();
        until(&mut follow, &dir.path().join("x"));
        drop(held);
        create_dir(&wanted).unwrap();
        until(&mut follow, &wanted);
    }
}
