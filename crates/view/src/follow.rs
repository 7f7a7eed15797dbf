//! Waiting for files to change: the one place where verbs, and the screen, block on the file system.
//!
//! Directories are watched, never files: a file's watch dies at the first rename. The caller arms first,
//! then looks, then waits; what happens between arming and looking wakes it, so nothing is missed. A wake
//! says "look", never what changed. A directory that is missing, or goes and comes again, is waited for
//! through the nearest one above it.

mod tail;

pub use tail::Tail;

use nix::errno::Errno;
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
const RELOOK: Duration = Duration::from_secs(30);

/// Why the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saw {
    /// Something may have changed: look.
    Changed,
    /// The deadline is over, or nothing was told for long: see [`Follow::next_after`].
    TimedOut,
    /// Nobody reads our output any more.
    HungUp,
}

/// Watches directories for as long as it lives.
#[derive(Debug)]
pub struct Follow {
    watcher: RecommendedWatcher,
    sender: Sender<Saw>,
    wakes: Receiver<Saw>,
    /// The watcher has told of a change that nobody has looked at yet: of a storm one is enough.
    told: Arc<AtomicBool>,
    armed: Vec<Armed>,
}

/// Wakes whoever waits, from another thread.
#[derive(Debug, Clone)]
pub struct Teller(Sender<Saw>);

impl Teller {
    /// Look!
    pub fn look(&self) {
        // Nobody waits any more: the process is about to end.
        self.0.send(Saw::Changed).ok();
    }

    /// Look once that process has ended, too. Where it can't be watched, nothing is told.
    pub fn look_at_the_end_of(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
        let teller = self.clone();
        std::thread::spawn(move || {
            let mut ended = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            while poll(&mut ended, PollTimeout::NONE).is_err() {}
            teller.look();
        });
    }
}

/// One wanted directory, and what is watched for it now.
#[derive(Debug)]
struct Armed {
    wanted: PathBuf,
    watched: Place,
}

/// A directory that exists: the same path with another inode is another one.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Follow {
    /// Arms `directories`, which are absolute and need not exist.
    pub fn new(directories: &[PathBuf]) -> Result<Follow, ErrorReport> {
        let (sender, wakes) = channel();
        let (tell, told) = (sender.clone(), Arc::new(AtomicBool::new(false)));
        let already = Arc::clone(&told);
        let watcher = notify::recommended_watcher(move |event| {
            if is_change(&event) && !already.swap(true, Ordering::AcqRel) {
                // Nobody waits any more: the process is about to end.
                tell.send(Saw::Changed).ok();
            }
        });
        let mut watcher = watcher.map_err(|error| unwatchable(Path::new("any directory"), &error))?;
        let arm =
            |wanted: &PathBuf| Ok(Armed { wanted: wanted.clone(), watched: arm(&mut watcher, wanted)? });
        let armed = directories.iter().map(arm).collect::<Result<_, ErrorReport>>()?;
        Ok(Follow { watcher, sender, wakes, told, armed })
    }

    /// The same, for a stream: it also ends when nobody reads stdout any more.
    pub fn streaming(directories: &[PathBuf]) -> Result<Follow, ErrorReport> {
        let follow = Follow::new(directories)?;
        let tell = follow.sender.clone();
        // It waits for the hang-up alone, and ends with the process where none comes.
        std::thread::spawn(move || {
            if hung_up(PollTimeout::NONE) {
                tell.send(Saw::HungUp).ok();
            }
        });
        Ok(follow)
    }

    /// For another thread: what it tells is one more reason to look.
    pub fn teller(&self) -> Teller {
        Teller(self.sender.clone())
    }

    /// Waits until something changes, or for ever without a deadline. Several changes may be one wake.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Saw, ErrorReport> {
        let seen = self.wake(deadline);
        if seen == Saw::Changed {
            self.rearm()?;
        }
        Ok(seen)
    }

    /// As [`Follow::next`] without a deadline, but no earlier than `earliest`, for who would look too often: all that
    /// changes until then is one wake. The look that comes without one is told as [`Saw::TimedOut`].
    pub fn next_after(&mut self, earliest: Instant) -> Result<Saw, ErrorReport> {
        let mut seen = self.wakes.recv_timeout(RELOOK).unwrap_or(Saw::TimedOut);
        while seen == Saw::Changed
            && let Some(left) = earliest.checked_duration_since(Instant::now())
        {
            match self.wakes.recv_timeout(left) {
                Ok(next) => seen = next,
                Err(_) => break,
            }
        }
        let seen = self.drained(seen);
        self.rearm()?;
        Ok(seen)
    }

    fn wake(&self, deadline: Option<Instant>) -> Saw {
        self.drained(self.first(deadline))
    }

    fn first(&self, deadline: Option<Instant>) -> Saw {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match self.wakes.recv_timeout(left.unwrap_or(RELOOK).min(RELOOK)) {
            Ok(seen) => seen,
            Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= RELOOK) => Saw::TimedOut,
            Err(_) => Saw::Changed,
        }
    }

    /// A burst is one wake, unless the hang-up is in it. The next change is told anew only once what was told is taken
    /// out: else its word would go with the others, and none would follow.
    fn drained(&self, first: Saw) -> Saw {
        let hung_up = self.wakes.try_iter().any(|seen| seen == Saw::HungUp);
        self.told.store(false, Ordering::Release);
        if hung_up { Saw::HungUp } else { first }
    }

    /// Follows what was made, removed or replaced on the way to a wanted directory.
    fn rearm(&mut self) -> Result<(), ErrorReport> {
        for armed in &mut self.armed {
            if nearest(&armed.wanted).as_ref() != Some(&armed.watched) {
                armed.watched = arm(&mut self.watcher, &armed.wanted)?;
            }
        }
        Ok(())
    }
}

/// Watches `wanted`, or the nearest directory above that exists; again if that changed meanwhile.
fn arm(watcher: &mut RecommendedWatcher, wanted: &Path) -> Result<Place, ErrorReport> {
    loop {
        let place = nearest(wanted).ok_or_else(|| {
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
        if nearest(wanted).as_ref() != Some(&place) {
            continue;
        }
        watched.map_err(|error| unwatchable(&place.path, &error))?;
        return Ok(place);
    }
}

fn nearest(wanted: &Path) -> Option<Place> {
    wanted.ancestors().find_map(|path| {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
        Some(Place { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    })
}

fn unwatchable(path: &Path, error: &notify::Error) -> ErrorReport {
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

/// Whether nobody reads our output any more, now.
pub fn is_unheard() -> bool {
    hung_up(PollTimeout::ZERO)
}

/// Waits that long for the end of whoever reads stdout; false where it did not come or can't be told.
fn hung_up(wait: PollTimeout) -> bool {
    let stdout = std::io::stdout();
    // Errors and hang-ups are reported though nothing is asked for.
    let mut asked = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    loop {
        match poll(&mut asked, wait) {
            Ok(ready) => return ready > 0,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir, remove_dir};

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn a_change_wakes_and_reading_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let mut follow = Follow::new(&[dir.path().to_owned()]).unwrap();
        drop(File::create(&file).unwrap());
        assert_eq!(follow.next(soon()).unwrap(), Saw::Changed);
        // By its kind, not by waiting for what must not come.
        let kind = |kind| is_change(&Ok(notify::Event::new(EventKind::Access(kind))));
        assert!(kind(AccessKind::Close(AccessMode::Write)));
        assert!(!kind(AccessKind::Open(AccessMode::Any)) && !kind(AccessKind::Close(AccessMode::Read)));
    }

    #[test]
    fn no_change_after_a_storm_is_missed_and_a_pace_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut follow = Follow::new(&[dir.path().to_owned()]).unwrap();
        for round in 0..50 {
            for n in 0..20 {
                drop(File::create(dir.path().join(format!("{round}-{n}"))).unwrap());
            }
            assert_eq!(follow.next(soon()).unwrap(), Saw::Changed, "{round}");
        }
        let earliest = Instant::now() + Duration::from_millis(50);
        drop(File::create(dir.path().join("last")).unwrap());
        assert_eq!(follow.next_after(earliest).unwrap(), Saw::Changed);
        assert!(Instant::now() >= earliest);
    }

    #[test]
    fn a_directory_that_comes_late_or_again_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("x/y");
        let mut follow = Follow::new(std::slice::from_ref(&wanted)).unwrap();
        let until = |follow: &mut Follow, path: &Path| {
            while follow.armed[0].watched.path != path {
                assert_eq!(follow.next(soon()).unwrap(), Saw::Changed);
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
