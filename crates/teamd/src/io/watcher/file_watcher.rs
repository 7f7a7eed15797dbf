//! The file watcher: watches directories with the crate `notify`, and turns changes into core
//! events.
//!
//! It does not watch single files, because such a watch ends when the file is replaced by a rename.
//! A core event names the changed file but does not say what changed. One change may cause several
//! events, and several changes may cause only one event.
//!
//! If the kernel's queue of file events overflows, the core rescans all files. It also does so
//! after each event on systems whose events do not name the changed file, such as macOS.

use crate::core::core_event::CoreEvent;
use crate::core::effect::Wake;
use crate::io::wake_sockets::WakeSockets;
use crate::io::watcher::barrier_files::Barriers;
use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// The kinds of events that mean a change. A file that was opened or read has not changed.
const CHANGES: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// Returns the directories of a team that are watched. A parent comes before its children, because
/// it must be watched first. If a child is created before it has a watch of its own, the watch of
/// the parent reports this.
pub(crate) fn directories(root: &Path, team: &TeamName) -> [PathBuf; 3] {
    let home = root.join("teams").join(team.as_str());
    let inboxes = home.join("inboxes");
    [home, inboxes, root.join("tasks").join(team.as_str())]
}

/// The components of `path` below the root. Empty if the path is not below the root.
pub(super) fn relative_parts<'a>(root: &Path, path: &'a Path) -> Vec<&'a str> {
    let below = path.strip_prefix(root).into_iter().flatten();
    below.filter_map(|part| part.to_str()).collect()
}

/// The core event for a change of the file or directory `path`. `None` for files that the daemon
/// does not read, such as locks and temporary files.
pub(crate) fn event_for(root: &Path, path: &Path) -> Option<CoreEvent> {
    match relative_parts(root, path).as_slice() {
        ["teams", file] if file.starts_with(".probe.") => Some(CoreEvent::ProbeSeen),
        ["teams", team] | ["teams", team, "inboxes"] => session_team_event(team),
        ["teams", team, "config.json"] => {
            Some(CoreEvent::ConfigChanged { team: TeamName::parse(team).ok()? })
        }
        ["teams", team, "inboxes", file] if !file.starts_with('.') => {
            let inbox = file.strip_suffix(".json")?.to_owned();
            Some(CoreEvent::InboxChanged {
                team: TeamName::parse(team).ok()?,
                inbox,
                owner_wake: Wake::Needed,
            })
        }
        ["tasks", team, file] => {
            let task = TaskId::parse(file.strip_suffix(".json")?).ok()?;
            Some(CoreEvent::TaskChanged { team: TeamName::parse(team).ok()?, task })
        }
        _ => None,
    }
}

/// Whether `path` is a watched directory of a team, except a team of a Claude Code session.
pub(super) fn is_team_directory(root: &Path, path: &Path) -> bool {
    match relative_parts(root, path).as_slice() {
        ["teams" | "tasks", team] | ["teams", team, "inboxes"] => {
            TeamName::parse(team).is_ok_and(|team| !team.is_claude_session())
        }
        _ => false,
    }
}

/// Whether `path` is the root or its directory `teams` or `tasks`.
pub(super) fn is_root_directory(root: &Path, path: &Path) -> bool {
    path == root || matches!(relative_parts(root, path).as_slice(), ["teams" | "tasks"])
}

/// Returns the event for a change of a directory of the team `name`, if this is a session team: a
/// team that a Claude Code session created for itself. `None` for any other team: a change of its
/// directories needs no event of its own, because the watcher makes the core rescan all files.
pub(super) fn session_team_event(name: &str) -> Option<CoreEvent> {
    let team = TeamName::parse(name).ok().filter(TeamName::is_claude_session)?;
    Some(CoreEvent::SessionTeamChanged { team })
}

/// A flag that is set while the event queue has a [`CoreEvent::WatcherOverflow`], so that the queue
/// never has two. Otherwise many changes at once would fill the queue with this event, and other
/// events would have to wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverflowFlag(Arc<AtomicBool>);

impl OverflowFlag {
    /// Sends [`CoreEvent::WatcherOverflow`], unless the event queue has one already.
    pub(super) fn report_once(&self, events: &UnboundedSender<CoreEvent>) {
        if !self.0.swap(true, Ordering::SeqCst) {
            events.send(CoreEvent::WatcherOverflow).ok();
        }
    }

    /// Allows the watcher to send [`CoreEvent::WatcherOverflow`] again. The event loop calls this
    /// function before the core starts its rescan, so that an overflow during the rescan is
    /// reported.
    pub(crate) fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// The watches of one root. They end when the value is dropped.
#[derive(Debug)]
pub(crate) struct FileWatcher {
    pub(super) watcher: RecommendedWatcher,
    pub(super) root: PathBuf,
    /// The error if the directory of the barriers cannot be watched.
    pub(super) barriers: Result<Barriers, String>,
    /// Whether a failed watch has been logged already. Further failures are not logged.
    pub(super) is_failure_logged: bool,
}

impl FileWatcher {
    /// Starts to watch the root and the directory of the barrier files ([`Barriers`]). Watches no
    /// team yet.
    ///
    /// # Errors
    ///
    /// If no watcher can be created, or if the root's `teams` or `tasks` cannot be watched.
    pub(crate) fn start(root: &Path, barriers: Barriers, sinks: WatchSinks) -> notify::Result<FileWatcher> {
        let places = (root.to_owned(), barriers.clone());
        let handler = move |event| handle_event((&places.0, &places.1), event, &sinks);
        let mut watcher = RecommendedWatcher::new(handler, Config::default().with_event_kinds(CHANGES))?;
        for directory in ["teams", "tasks"] {
            watcher.watch(&root.join(directory), RecursiveMode::NonRecursive)?;
        }
        // The daemon has `teams` and `tasks` open. The watch of an open directory does not report
        // that the directory was removed, but the watch of its parent, the root, does. If the root
        // cannot be watched, the next rescan notices the removal.
        watcher.watch(root, RecursiveMode::NonRecursive).ok();
        let watched = barriers.ensure_directory().map_err(notify::Error::io);
        let watched = watched.and_then(|directory| watcher.watch(directory, RecursiveMode::NonRecursive));
        let watched = watched.map(|()| barriers);
        Ok(FileWatcher {
            watcher,
            root: root.to_owned(),
            barriers: watched.map_err(|error| error.to_string()),
            is_failure_logged: false,
        })
    }

    /// Creates and removes the barrier file with the number `barrier`. The watcher sends
    /// [`CoreEvent::BarrierReached`] after the events of all earlier changes.
    ///
    /// # Errors
    ///
    /// The reason for the failure, as text.
    pub(crate) fn create_barrier(&self, barrier: u64) -> Result<(), String> {
        let barriers = self.barriers.as_ref().map_err(String::clone)?;
        barriers.create(barrier).map_err(|error| error.to_string())
    }

    /// Adds watches for the directories of a team. Returns false if a directory exists but cannot
    /// be watched. A directory that does not exist yet gets its watch after a later rescan.
    pub(crate) fn watch_team(&mut self, team: &TeamName) -> bool {
        let results = directories(&self.root, team).map(|directory| self.watch_directory(&directory));
        let are_all_watched = results.iter().all(|results| *results);
        self.is_failure_logged |= !are_all_watched;
        are_all_watched
    }

    /// Adds a watch for a directory. Returns false if the directory exists but cannot be watched.
    ///
    /// A missing directory is skipped without a call of `notify`. The call would block until all
    /// queued file events are delivered, which takes long after many changes.
    pub(super) fn watch_directory(&mut self, directory: &Path) -> bool {
        if !directory.is_dir() {
            return true;
        }
        let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive) else { return true };
        let exists = !matches!(error.kind, notify::ErrorKind::PathNotFound) && directory.is_dir();
        // Each rescan tries again, so only the first failure is logged.
        if exists && !self.is_failure_logged {
            tracing::warn!("cannot watch {}: {error}", directory.display());
        }
        !exists
    }

    /// Ends the watches of a team's directories.
    pub(crate) fn unwatch_team(&mut self, team: &TeamName) {
        for directory in directories(&self.root, team) {
            // An error is ignored, because `unwatch` fails only if there is no watch. For example,
            // the kernel has removed the watch together with the directory.
            self.watcher.unwatch(&directory).ok();
        }
    }
}

/// Handles one event of `notify`, on its thread: sends the core events and wakes inbox owners.
pub(super) fn handle_event(
    (root, barriers): (&Path, &Barriers),
    event: notify::Result<notify::Event>,
    (wake_sockets, overflow, events): &WatchSinks,
) {
    failpoint::hit("watch.event");
    let Ok(event) = event else { return overflow.report_once(events) };
    if event.need_rescan() {
        overflow.report_once(events);
    }
    // For a rename within a directory, `notify` also sends one event for each name.
    if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) {
        return;
    }
    if !platform::system().file_events_name_files() {
        return report_unnamed_change(root, &event.paths, (overflow, events));
    }
    let may_be_new = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_));
    let is_unwatched =
        |path: &PathBuf| is_root_directory(root, path) || may_be_new && is_team_directory(root, path);
    if event.paths.iter().any(is_unwatched) {
        // A new directory has no watch yet, so changes in it may have been missed.
        overflow.report_once(events);
    }
    for path in &event.paths {
        if let Some(event) = event_for(root, path).or_else(|| barriers.event_for(event.kind, path)) {
            events.send(wake_owner(event, wake_sockets)).ok();
        }
    }
}

/// Reports a change on a system that does not say which file changed, so that the core rescans all
/// files. On such a system, `paths` may have the watched directory or some other file in it instead
/// of the changed file.
fn report_unnamed_change(
    root: &Path,
    paths: &[PathBuf],
    (overflow, events): (&OverflowFlag, &UnboundedSender<CoreEvent>),
) {
    overflow.report_once(events);
    let may_be_probe =
        |path: &PathBuf| matches!(relative_parts(root, path).as_slice(), ["teams"] | ["teams", _]);
    if paths.iter().any(may_be_probe) {
        events.send(CoreEvent::ProbeSeen).ok();
    }
}

/// Wakes the owner of a changed inbox. The returned event says whether the owner was woken.
pub(super) fn wake_owner(event: CoreEvent, wake_sockets: &WakeSockets) -> CoreEvent {
    match event {
        CoreEvent::InboxChanged { team, inbox, .. } => {
            let is_woken = wake_sockets.wake_inbox_owner(&team, &inbox);
            let owner_wake = if is_woken { Wake::Done } else { Wake::Needed };
            CoreEvent::InboxChanged { team, inbox, owner_wake }
        }
        event => event,
    }
}

/// Where the watcher sends its reports: the wake sockets of inbox owners, the overflow flag and the
/// event queue.
pub(crate) type WatchSinks = (WakeSockets, OverflowFlag, UnboundedSender<CoreEvent>);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    #[test]
    fn a_rename_is_reported_once_for_each_name() {
        let root = Path::new("/root");
        let inbox = |name: &str| root.join("teams/survey/inboxes").join(name);
        let (events, mut queue) = tokio::sync::mpsc::unbounded_channel();
        let sinks = (WakeSockets::default(), OverflowFlag::default(), events);
        let both = [inbox(".ann.json.tmp.1"), inbox("ann.json")];
        let [from, to] = both.clone().map(|path| vec![path]);
        for (mode, paths) in [(RenameMode::From, from), (RenameMode::To, to), (RenameMode::Both, both.into())]
        {
            let kind = EventKind::Modify(ModifyKind::Name(mode));
            let event = notify::Event { kind, paths, attrs: notify::event::EventAttributes::new() };
            handle_event((root, &Barriers::new(Path::new("/state"))), Ok(event), &sinks);
        }
        let reported: Vec<CoreEvent> = std::iter::from_fn(|| queue.try_recv().ok()).collect();
        let [CoreEvent::InboxChanged { inbox, owner_wake: Wake::Needed, .. }] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert_eq!(inbox, "ann");
    }

    #[test]
    fn an_overflow_is_reported_once_until_the_flag_is_reset() {
        let (root, overflow) = (Path::new("/root"), OverflowFlag::default());
        let (events, mut queue) = tokio::sync::mpsc::unbounded_channel();
        let sinks = (WakeSockets::default(), overflow.clone(), events);
        let mut count_reports = || {
            for team in (0..1_000).map(|n| root.join(format!("teams/t{n}"))) {
                let kind = notify::EventKind::Create(notify::event::CreateKind::Folder);
                let event =
                    notify::Event { kind, paths: vec![team], attrs: notify::event::EventAttributes::new() };
                handle_event((root, &Barriers::new(Path::new("/state"))), Ok(event), &sinks);
            }
            std::iter::from_fn(|| queue.try_recv().ok()).count()
        };
        assert_eq!([count_reports(), count_reports()], [1, 0]);
        overflow.reset();
        assert_eq!(count_reports(), 1);
    }

    #[test]
    fn a_change_of_an_unknown_file_is_an_overflow_and_shows_that_events_arrive() {
        let (root, overflow) = (Path::new("/root"), OverflowFlag::default());
        let (events, mut queue) = tokio::sync::mpsc::unbounded_channel();
        for path in ["teams/survey/inboxes", "teams", "tasks/survey/1.json"] {
            report_unnamed_change(root, &[root.join(path)], (&overflow, &events));
        }
        let reported: Vec<CoreEvent> = std::iter::from_fn(|| queue.try_recv().ok()).collect();
        assert!(matches!(*reported, [CoreEvent::WatcherOverflow, CoreEvent::ProbeSeen]), "{reported:?}");
    }

    #[tokio::test]
    async fn a_barrier_is_reported_after_all_earlier_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (root, team) = (dir.path().join("root"), TeamName::parse("survey").unwrap());
        for directory in directories(&root, &team) {
            std::fs::create_dir_all(directory).unwrap();
        }
        let (events, mut queue) = tokio::sync::mpsc::unbounded_channel();
        let barriers = Barriers::new(&dir.path().join("state"));
        let mut watcher =
            FileWatcher::start(&root, barriers, (WakeSockets::default(), OverflowFlag::default(), events))
                .unwrap();
        assert!(watcher.watch_team(&team));
        for barrier in 1..=50 {
            // Written in place, as some foreign programs do.
            let task = root.join(format!("tasks/survey/{barrier}.json"));
            std::fs::File::create(task).unwrap().write_all(b"{}").unwrap();
            watcher.create_barrier(barrier).unwrap();
            let mut tasks = std::collections::BTreeSet::new();
            loop {
                match tokio::time::timeout(Duration::from_secs(20), queue.recv()).await.unwrap() {
                    Some(CoreEvent::TaskChanged { task, .. }) => drop(tasks.insert(u64::from(task.number()))),
                    Some(CoreEvent::BarrierReached { barrier: reached }) if reached == barrier => break,
                    Some(_) => {}
                    None => panic!("the watcher has stopped"),
                }
            }
            assert!(tasks.contains(&barrier), "{tasks:?}");
        }
    }

    #[test]
    fn a_team_directory_is_watched_after_its_parent() {
        let team = TeamName::parse("survey").unwrap();
        let watched = directories(Path::new("/root"), &team);
        for (n, directory) in watched.iter().enumerate() {
            assert!(is_team_directory(Path::new("/root"), directory));
            assert!(!watched[n..].iter().any(|later| directory.parent() == Some(later)), "{watched:?}");
        }
    }
}
