//! Waits until files in some directories change. Used by teamctl and teamd-top.
//!
//! A caller creates the watcher, reads the files, and then waits. Any change after the watcher's
//! creation ends the wait, so no change is missed. The watcher does not say what has changed.
//!
//! Only directories are watched, because the kernel stops watching a file when another file
//! replaces it. If a directory does not exist, its nearest existing ancestor is watched. If a
//! directory is replaced, the new one is watched.
//!
//! Linux limits how many directories can be watched, and how many watchers can exist. If a limit
//! prevents a watch, each wait ends after two seconds at the latest, so that the caller reads the
//! files again.

use crate::stdout_closed::poll_output_closed;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use platform::ExitHandle;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

/// Interval after which a wait without events ends, because some file systems lose events.
const RESCAN_INTERVAL: Duration = Duration::from_secs(30);

/// The longest wait while a directory cannot be watched. The daemon rescans at the same interval.
const FALLBACK_RESCAN_INTERVAL: Duration = Duration::from_secs(2);

/// The kinds of events that mean a change. A file that was opened or read has not changed.
const CHANGES: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// Files may have changed.
    Changed,
    /// The deadline has passed, or [`DirectoryWatcher::wait_at_least_until`] has waited for its
    /// maximum time.
    TimedOut,
    /// The reader of standard output has closed it.
    OutputClosed,
}

/// Watches directories until it is dropped.
#[derive(Debug)]
pub struct DirectoryWatcher {
    /// `None` if the system had no watch instance left when this watcher was created.
    watcher: Option<RecommendedWatcher>,
    sender: Sender<WatchEvent>,
    events: Receiver<WatchEvent>,
    /// Whether the channel to this watcher contains a `Changed` event that `wait` has not received
    /// yet. While it contains one, further changes send no event.
    change_pending: Arc<AtomicBool>,
    directories: Vec<WatchedDirectory>,
}

/// Ends the waits of a [`DirectoryWatcher`] from another thread.
#[derive(Debug, Clone)]
pub struct WatchNotifier(Sender<WatchEvent>);

impl WatchNotifier {
    /// Ends the current or next wait with `Changed`.
    pub fn notify(&self) {
        // Sending fails only if the watcher was dropped, shortly before the process exits.
        self.0.send(WatchEvent::Changed).ok();
    }

    /// Ends the watcher's current or next wait with `Changed` once the process `pid` exits. Does
    /// nothing if the process cannot be watched.
    pub fn notify_on_exit(&self, pid: u32) {
        let Some(process) = ExitHandle::open(pid) else { return };
        let notifier = self.clone();
        std::thread::spawn(move || {
            let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
            while poll(&mut fds, PollTimeout::NONE).is_err() {}
            notifier.notify();
        });
    }
}

/// A directory that the caller wants to watch, and the directory that is watched for it.
#[derive(Debug)]
struct WatchedDirectory {
    wanted: PathBuf,
    /// `None` while the system's limit of watches prevents the watch.
    watched: Option<DirectoryId>,
}

/// An existing directory. Another inode at the same path is another directory.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryId {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// When the directory was created. File systems such as ext4 reuse the inode of a removed
    /// directory, so the inode alone does not identify a directory. `None` if the file system does
    /// not store this time.
    created: Option<SystemTime>,
}

impl DirectoryWatcher {
    /// Starts watching `directories`. Their paths are absolute and need not exist.
    pub fn new(directories: &[PathBuf]) -> Result<DirectoryWatcher, ErrorReport> {
        let (sender, events) = channel();
        let (change_sender, change_pending) = (sender.clone(), Arc::new(AtomicBool::new(false)));
        let is_pending = Arc::clone(&change_pending);
        // An error is reported too, because it means that events were lost.
        let report_change = move |_: notify::Result<notify::Event>| {
            if !is_pending.swap(true, Ordering::AcqRel) {
                // Sending fails only if the watcher was dropped, shortly before the process exits.
                change_sender.send(WatchEvent::Changed).ok();
            }
        };
        let watcher = match new_watcher(report_change) {
            Ok(watcher) => Some(watcher),
            Err(error) if is_limit(&error) => None,
            Err(error) => return Err(watch_error(Path::new("any directory"), &error)),
        };
        let mut watcher =
            DirectoryWatcher { watcher, sender, events, change_pending, directories: Vec::new() };
        watcher.directories = directories
            .iter()
            .map(|wanted| WatchedDirectory { wanted: wanted.clone(), watched: None })
            .collect();
        watcher.update_watches()?;
        Ok(watcher)
    }

    /// Whether all directories are watched, so that a change ends a wait at once. False if a limit
    /// of the system prevents a watch.
    pub fn is_watching(&self) -> bool {
        self.directories.iter().all(|directory| directory.watched.is_some())
    }

    fn rescan_interval(&self) -> Duration {
        if self.is_watching() { RESCAN_INTERVAL } else { FALLBACK_RESCAN_INTERVAL }
    }

    /// Like [`DirectoryWatcher::new`], but a wait of this watcher also ends when the reader of
    /// standard output closes the pipe.
    pub fn new_for_stream(directories: &[PathBuf]) -> Result<DirectoryWatcher, ErrorReport> {
        let watcher = DirectoryWatcher::new(directories)?;
        let sender = watcher.sender.clone();
        // This thread is never stopped: it waits until the reader of standard output closes the
        // pipe, or until this process exits.
        std::thread::spawn(move || {
            if poll_output_closed(PollTimeout::NONE) {
                sender.send(WatchEvent::OutputClosed).ok();
            }
        });
        Ok(watcher)
    }

    /// A handle with which another thread can end the waits of this watcher.
    pub fn notifier(&self) -> WatchNotifier {
        WatchNotifier(self.sender.clone())
    }

    /// Waits for a change, or until `deadline`. Without an event, the wait ends with `Changed`
    /// after 30 s, because some file systems lose events, or after 2 s while a directory cannot be
    /// watched.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<WatchEvent, ErrorReport> {
        let event = self.wait_and_drain(deadline);
        if event == WatchEvent::Changed {
            self.update_watches()?;
        }
        Ok(event)
    }

    /// Waits for a change, and returns not before `earliest`. So a caller can limit how often it
    /// reads the files: many changes before `earliest` cause only one return.
    ///
    /// Without an event, returns `TimedOut` after 30 s, or after 2 s while a directory cannot be
    /// watched.
    pub fn wait_at_least_until(&mut self, earliest: Instant) -> Result<WatchEvent, ErrorReport> {
        let mut event = self.events.recv_timeout(self.rescan_interval()).unwrap_or(WatchEvent::TimedOut);
        while event == WatchEvent::Changed
            && let Some(remaining) = earliest.checked_duration_since(Instant::now())
        {
            match self.events.recv_timeout(remaining) {
                Ok(next_event) => event = next_event,
                Err(_) => break,
            }
        }
        let event = self.drain(event);
        self.update_watches()?;
        Ok(event)
    }

    fn wait_and_drain(&self, deadline: Option<Instant>) -> WatchEvent {
        self.drain(self.wait_once(deadline))
    }

    fn wait_once(&self, deadline: Option<Instant>) -> WatchEvent {
        let interval = self.rescan_interval();
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match self.events.recv_timeout(remaining.unwrap_or(interval).min(interval)) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) if remaining.is_some_and(|remaining| remaining <= interval) => {
                WatchEvent::TimedOut
            }
            Err(_) => WatchEvent::Changed,
        }
    }

    /// Discards all events in the channel. Returns `OutputClosed` if one of them was
    /// `OutputClosed`, otherwise `first_event`.
    ///
    /// The flag `change_pending` is cleared last, when the channel is empty. Otherwise this
    /// function could discard an event that was sent after the flag was cleared. The flag would
    /// then stay set, and no later change would send an event.
    fn drain(&self, first_event: WatchEvent) -> WatchEvent {
        let is_closed = self.events.try_iter().any(|event| event == WatchEvent::OutputClosed);
        self.change_pending.store(false, Ordering::Release);
        if is_closed { WatchEvent::OutputClosed } else { first_event }
    }

    /// Watches each wanted directory, or its nearest existing ancestor. Called again after each
    /// change, because directories on the path may have been created, removed or replaced.
    fn update_watches(&mut self) -> Result<(), ErrorReport> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        for directory in &mut self.directories {
            if directory.watched.is_none() || nearest_directory(&directory.wanted) != directory.watched {
                directory.watched = watch_nearest(watcher, &directory.wanted)?;
            }
        }
        Ok(())
    }
}

/// Watches `wanted`, or its nearest existing ancestor if `wanted` does not exist. Tries again if
/// another directory has become the nearest one meanwhile. `None` if a limit of the system prevents
/// the watch.
fn watch_nearest(
    watcher: &mut RecommendedWatcher,
    wanted: &Path,
) -> Result<Option<DirectoryId>, ErrorReport> {
    loop {
        let nearest = nearest_directory(wanted).ok_or_else(|| {
            ErrorReport::new(
                ErrorKind::MissingPath,
                format!("cannot watch {}: nothing above it exists", wanted.display()),
            )
        })?;
        // The parent directory is watched too, because the parent's watch reports at once that the
        // directory was removed. The directory's own watch reports its removal only after all
        // processes have closed it, and programs that use the crate `store` keep it open. If the
        // parent cannot be watched, the next rescan notices the removal.
        if let Some(parent) = nearest.path.parent() {
            watcher.watch(parent, RecursiveMode::NonRecursive).ok();
        }
        let result = watcher.watch(&nearest.path, RecursiveMode::NonRecursive);
        if nearest_directory(wanted).as_ref() != Some(&nearest) {
            continue;
        }
        return match result {
            Ok(()) => Ok(Some(nearest)),
            Err(error) if is_limit(&error) => Ok(None),
            Err(error) => Err(watch_error(&nearest.path, &error)),
        };
    }
}

fn nearest_directory(wanted: &Path) -> Option<DirectoryId> {
    wanted.ancestors().find_map(|path| {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
        let (device, inode, created) = (metadata.dev(), metadata.ino(), metadata.created().ok());
        Some(DirectoryId { path: path.to_owned(), device, inode, created })
    })
}

/// Whether a limit of the system prevents the watch. EMFILE is the limit of watchers or of open
/// files, and ENOSPC the limit of watched directories.
fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => true,
        notify::ErrorKind::Io(cause) => {
            [Errno::EMFILE, Errno::ENOSPC].iter().any(|limit| cause.raw_os_error() == Some(*limit as i32))
        }
        _ => false,
    }
}

/// A watcher that reports only changes, not reads.
fn new_watcher(handler: impl notify::EventHandler) -> notify::Result<RecommendedWatcher> {
    RecommendedWatcher::new(handler, Config::default().with_event_kinds(CHANGES))
}

fn watch_error(path: &Path, error: &notify::Error) -> ErrorReport {
    ErrorReport::from_io("watch", path, error)
        .with_help("see whether the system's limits are too low: teamctl doctor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir, remove_dir};

    fn deadline() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn write_ends_a_wait() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let mut watcher = DirectoryWatcher::new(&[dir.path().to_owned()]).unwrap();
        drop(File::create(&file).unwrap());
        assert_eq!(watcher.wait(deadline()).unwrap(), WatchEvent::Changed);
    }

    #[test]
    fn read_is_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let [read, written] = ["read", "written"].map(|name| dir.path().join(name));
        drop(File::create(&read).unwrap());
        let (sender, events) = channel();
        let mut watcher = new_watcher(sender).unwrap();
        watcher.watch(dir.path(), RecursiveMode::NonRecursive).unwrap();
        std::io::read_to_string(File::open(&read).unwrap()).unwrap();
        // The events arrive in order, so those of the read would come before those of the write.
        drop(File::create(&written).unwrap());
        let event = events.recv_timeout(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(event.paths, [written]);
    }

    #[test]
    fn no_change_is_missed_and_the_interval_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = DirectoryWatcher::new(&[dir.path().to_owned()]).unwrap();
        for round in 0..50 {
            for n in 0..20 {
                drop(File::create(dir.path().join(format!("{round}-{n}"))).unwrap());
            }
            assert_eq!(watcher.wait(deadline()).unwrap(), WatchEvent::Changed, "{round}");
        }
        let earliest = Instant::now() + Duration::from_millis(50);
        drop(File::create(dir.path().join("last")).unwrap());
        assert_eq!(watcher.wait_at_least_until(earliest).unwrap(), WatchEvent::Changed);
        assert!(Instant::now() >= earliest);
    }

    #[test]
    fn directory_that_gets_the_inode_of_a_removed_one_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("x");
        create_dir(&directory).unwrap();
        let (first, started_at) = (nearest_directory(&directory), Instant::now());
        // File systems store the time of creation to some milliseconds only.
        while started_at.elapsed() < Duration::from_millis(50) {
            remove_dir(&directory).unwrap();
            create_dir(&directory).unwrap();
        }
        assert_ne!(nearest_directory(&directory), first);
    }

    #[test]
    fn late_and_recreated_directories_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("x/y");
        let mut watcher = DirectoryWatcher::new(std::slice::from_ref(&directory)).unwrap();
        let wait_until_watched = |watcher: &mut DirectoryWatcher, path: &Path| {
            while watcher.directories[0].watched.as_ref().unwrap().path != path {
                assert_eq!(watcher.wait(deadline()).unwrap(), WatchEvent::Changed);
            }
        };
        create_dir(dir.path().join("x")).unwrap();
        wait_until_watched(&mut watcher, &dir.path().join("x"));
        create_dir(&directory).unwrap();
        wait_until_watched(&mut watcher, &directory);
        let open_directory = File::open(&directory).unwrap();
        // The directory is open, so only its parent directory reports the removal at once.
        remove_dir(&directory).unwrap();
        wait_until_watched(&mut watcher, &dir.path().join("x"));
        drop(open_directory);
        create_dir(&directory).unwrap();
        wait_until_watched(&mut watcher, &directory);
    }
}
